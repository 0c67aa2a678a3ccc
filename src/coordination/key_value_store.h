// Small values under names, shared by all ranks of a job.
#pragma once

#include <string>

namespace bev {

class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;

  // Another value under the same key is an Internal error.
  virtual void put(const std::string& key, const std::string& value) = 0;
  // Waits until a rank has put it; a Comm error when the limit of the store passes.
  virtual std::string get(const std::string& key) = 0;

 protected:
  KeyValueStore() = default;
};

}  // namespace bev
