#include "serve/generation_job.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/format.h"
#include "text/utf8.h"

namespace bev {

ApiError error_of(const GenerationService::Answer& answer, const GenerationService& service) {
  if (!service.failure().empty())
    return {.status = 503, .message = answer.refusal, .code = "service_failed"};
  if (answer.is_full) return {.status = 429, .message = answer.refusal, .code = "queue_full"};
  return {.status = 400, .message = answer.refusal, .code = "request_too_large"};
}

std::string encode_source(const ServedModel& model, const RequestPrompt& prompt,
                          std::vector<int32_t>& ids) {
  ids = prompt.ids;
  try {
    if (!prompt.text.empty())
      encode_source(prompt.text, model.source->special, *model.tokenizer, ids);
  } catch (const Error& error) {
    return error.what();
  }
  if (ids.empty()) return "the prompt is empty, but the encoder of this model reads a text";
  if (std::ssize(ids) > model.source->longest)
    return format("the prompt has {} tokens, but the encoder of this model reads at most {}",
                  ids.size(), model.source->longest);
  return {};
}

GenerationGroup::GenerationGroup(GenerationService& service, const Tokenizer& tokenizer,
                                 PostCall post, Listener listener)
    : service_(service),
      tokenizer_(tokenizer),
      post_(std::move(post)),
      listener_(std::move(listener)),
      inbox_(std::make_shared<Inbox>()) {
  inbox_->group = this;
}

GenerationGroup::~GenerationGroup() {
  texts_.clear();
  inbox_->group = nullptr;
}

std::optional<ApiError> GenerationGroup::submit(std::vector<WantedText> wanted, uint64_t group) {
  texts_.reserve(wanted.size());
  for (WantedText& each : wanted) {
    const size_t number = texts_.size();
    texts_.push_back({.ticket = {},
                      .stream = TextStreamer(tokenizer_, std::move(each.stops), each.request.prompt,
                                             each.request.source.shown_specials()),
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

void GenerationGroup::deliver() {
  std::vector<Arrived> arrived;
  {
    const std::lock_guard lock(inbox_->mutex);
    arrived.swap(inbox_->arrived);
  }
  for (const Arrived& each : arrived)
    if (each.text < texts_.size() && texts_[each.text].is_open) take(each.text, each.event);
}

void GenerationGroup::take(size_t number, const TokenEvent& event) {
  Text& text = texts_[number];
  TextUpdate update{.text = number, .event = &event};
  if (event.has_token) {
    ++generated_;
    update.has_token = event.finish != FinishReason::End || event.token.id != text.end;
  }
  if (update.has_token) {
    TextStreamer::Piece piece = text.stream.add(event.token.id);
    update.piece = std::move(piece.text);
    update.is_cut = piece.stopped;
  }
  update.is_end = update.is_cut || event.finish != FinishReason::None;
  if (update.is_end) {
    const bool is_long = event.finish == FinishReason::Length && !update.is_cut;
    if (event.finish != FinishReason::Failed) update.reason = is_long ? "length" : "stop";
    if (!update.is_cut) update.piece += text.stream.finish();
    text.is_open = false;
    text.ticket.reset();
    --open_;
  }
  listener_(update);
}

namespace {

std::string exact_text(const Tokenizer& tokenizer, int32_t before, int32_t id) {
  const std::array both{before, id};
  if (before >= 0) {
    const std::string first = tokenizer.decode({both.data(), 1});
    std::string text = tokenizer.decode(both);
    // A first word may be written unlike others: then only together do they tell.
    if (text.starts_with(first)) return text.substr(first.size());
  }
  return tokenizer.decode({&id, 1});
}

}  // namespace

std::string token_text(const Tokenizer& tokenizer, int32_t before, int32_t id) {
  std::string text = exact_text(tokenizer, before, id);
  if (valid_utf8_prefix(text) == text.size()) return text;
  std::string bytes = "bytes:";
  for (const char c : text) bytes += format("\\x{:02x}", static_cast<unsigned char>(c));
  return bytes;
}

std::vector<std::string> token_texts(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    texts.push_back(token_text(tokenizer, i == 0 ? -1 : ids[i - 1], ids[i]));
  return texts;
}

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

}  // namespace bev
