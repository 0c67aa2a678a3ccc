// control/ in the folder of a run: whoever may write there asks the run for something by making a
// file. save, stop and eval need no content, lr holds a factor of the scheduled learning rate.
// Names are read in upper and lower case alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"

namespace bev {

struct ControlRequest {
  enum class Kind : uint8_t { Save, Stop, Eval, Rate };

  Kind kind = Kind::Save;
  double rate = 1;   // of Rate
  std::string by{};  // user name of who owns the file
  int64_t time = 0;  // of its last change, in seconds since 1970
};

// "save", "stop", "eval", "lr".
std::string_view name_of(ControlRequest::Kind kind);

class ControlFolder {
 public:
  using Clock = std::function<double()>;

  // Names only; touches nothing. `clock`: seconds that only rise.
  explicit ControlFolder(std::filesystem::path folder, Clock clock = seconds_now);

  // Makes the folder, for the group too where the folder above it is, with a README about what can
  // be asked for. Data error.
  void prepare() const;

  // What is asked for and was not taken. Cheap enough for every iteration: looks at the folder's
  // time and reads it only where that is new.
  std::vector<ControlRequest> poll();
  // Its file goes. One that cannot be removed is not asked for again until it is changed.
  void take(const ControlRequest& request);

  // A line about each file that means nothing, once until it is changed.
  std::vector<std::string> take_notes();

 private:
  struct Seen {
    FileStamp stamp{};
    double since = 0;         // when this stamp was first seen
    bool is_noted = false;    // a line was said about it
    bool is_refused = false;  // it was taken and could not be removed
  };
  struct Waiting {
    ControlRequest request{};
    std::vector<std::string> files{};
  };

  bool is_worth_reading();
  void read_folder(int folder);
  void look_at(int folder, const std::string& name);
  // Absent: none yet, or never.
  std::optional<double> rate_in(int folder, const std::string& name, const Seen& seen);
  void note_once(const std::string& name, const std::string& text);

  std::filesystem::path folder_;
  Clock clock_;
  std::optional<std::filesystem::file_time_type> last_;  // of the folder
  double changed_ = 0;                                   // when that was first seen
  bool watches_files_ = false;  // some may change while the folder does not
  std::map<std::string, Seen> seen_;
  std::vector<Waiting> waiting_;
  std::vector<std::string> notes_;
};

}  // namespace bev
