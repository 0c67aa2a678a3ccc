#include "serve/generation_group.h"

#include <utility>

namespace bev {

ApiError error_of(const GenerationService::Answer& answer, const GenerationService& service) {
  if (!service.failure().empty())
    return {.status = 503, .message = answer.refusal, .code = "service_failed"};
  if (answer.is_full) return {.status = 429, .message = answer.refusal, .code = "queue_full"};
  return {.status = 400, .message = answer.refusal, .code = "request_too_large"};
}

TextGroup::TextGroup(GenerationService& service, const Tokenizer& tokenizer, PostCall post,
                     Listener listener)
    : service_(service),
      tokenizer_(tokenizer),
      post_(std::move(post)),
      listener_(std::move(listener)),
      inbox_(std::make_shared<Inbox>()) {
  inbox_->group = this;
}

TextGroup::~TextGroup() {
  texts_.clear();
  inbox_->group = nullptr;
}

std::optional<ApiError> TextGroup::submit(std::vector<WantedText> wanted, uint64_t group) {
  texts_.reserve(wanted.size());
  for (WantedText& each : wanted) {
    const size_t number = texts_.size();
    texts_.push_back({.ticket = {},
                      .stream = TextStream(tokenizer_, std::move(each.stops), each.request.prompt),
                      .end = each.request.end});
    const TokenSink sink = [inbox = inbox_, post = post_, number](const TokenEvent& event) {
      bool is_first = false;
      {
        const std::lock_guard lock(inbox->mutex);
        is_first = inbox->arrived.empty();
        inbox->arrived.push_back({number, event});
      }
      if (is_first)
        post([inbox] {
          if (inbox->group != nullptr) inbox->group->deliver();
        });
    };
    GenerationService::Answer answer = service_.submit(std::move(each.request), sink, group);
    if (answer.ticket == nullptr) {
      texts_.clear();
      return error_of(answer, service_);
    }
    texts_.back().ticket = std::move(answer.ticket);
  }
  open_ = texts_.size();
  return {};
}

void TextGroup::deliver() {
  std::vector<Arrived> arrived;
  {
    const std::lock_guard lock(inbox_->mutex);
    arrived.swap(inbox_->arrived);
  }
  for (const Arrived& each : arrived)
    if (each.text < texts_.size() && texts_[each.text].is_open) take(each.text, each.event);
}

void TextGroup::take(size_t number, const TokenEvent& event) {
  Text& text = texts_[number];
  TextUpdate update{.text = number, .event = &event};
  if (event.has_token) {
    ++generated_;
    update.has_token = event.finish != Finish::End || event.token.id != text.end;
  }
  if (update.has_token) {
    TextStream::Piece piece = text.stream.add(event.token.id);
    update.piece = std::move(piece.text);
    update.is_cut = piece.stopped;
  }
  update.is_end = update.is_cut || event.finish != Finish::None;
  if (update.is_end) {
    const bool is_long = event.finish == Finish::Length && !update.is_cut;
    if (event.finish != Finish::Failed) update.reason = is_long ? "length" : "stop";
    if (!update.is_cut) update.piece += text.stream.finish();
    text.is_open = false;
    text.ticket.reset();
    --open_;
  }
  listener_(update);
}

}  // namespace bev
