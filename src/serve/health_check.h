// Whether the model still makes tokens: asked of the model itself, since a server whose model hangs
// answers everything else.
#pragma once

#include <chrono>
#include <memory>
#include <set>

#include "serve/generation_group.h"
#include "serve/http/http_handler.h"
#include "serve/served_model.h"

namespace bev {

// Of the thread of the server. One token is made for all who ask at a time; the result counts for
// some seconds. Where texts wait in front of that token, it is enough that the model gets on.
class HealthCheck {
 public:
  HealthCheck(const ServedModel& model, PostCall post, std::chrono::milliseconds valid,
              std::chrono::milliseconds limit);

  // Answers now or soon.
  std::unique_ptr<HttpWork> ask(HttpAnswer& answer);
  void tick();

 private:
  class Question;
  using Time = std::chrono::steady_clock::time_point;

  void begin();
  // Tells all who ask. Empty: it is well. The probe stays: it may be what is calling.
  void conclude(const std::string& problem);
  HttpResponse response() const;

  const ServedModel& model_;
  PostCall post_;
  std::chrono::milliseconds valid_, limit_;
  std::set<Question*> asking_;
  std::unique_ptr<TextGroup> probe_;  // the last one
  bool is_probing_ = false;
  Time began_{}, valid_until_{};
  int64_t steps_ = 0;  // when the probe began
  std::string problem_;
};

}  // namespace bev
