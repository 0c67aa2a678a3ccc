// bevatron serve: a trained model behind HTTP.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>

#include "app/cli/cli_flags.h"
#include "app/cli/console.h"
#include "app/cli/shared_flags.h"
#include "app/cli/signals.h"
#include "app/cli/verbs.h"
#include "app/launch/inference_ranks.h"
#include "base/check.h"
#include "base/file.h"
#include "base/integer.h"
#include "config/tokenizer_config.h"
#include "infer/generation_service.h"
#include "launch/rank_environment.h"
#include "net/address.h"
#include "net/socket.h"
#include "serve/api_server.h"

namespace bev::app {

// The key that clients of a server must show.

// What --api-key-file names, else BEVATRON_API_KEY; empty: neither is given. At least 16 visible
// characters; a file that others than its owner can read is refused. Usage errors.
std::string api_key(const FlagValues& flags, const Getenv& getenv);

namespace {

constexpr std::array kServeFlags{
    VerbFlag{"--host", "ADDRESS", "where to listen [default: 127.0.0.1]"},
    VerbFlag{"--port", "N", "0: any free one [default: 8000]"},
    VerbFlag{"--api-key-file", "FILE",
             "the key that clients must show (Authorization: Bearer KEY); else BEVATRON_API_KEY"},
    VerbFlag{"--allow-open", "", "no key, although others than this machine can connect"},
    VerbFlag{"--allow-host", "NAME ...",
             "what clients may call this server; on 127.0.0.1 besides localhost [default there: "
             "nothing else, elsewhere: anything]"},
    VerbFlag{"--model-name", "NAME", "what clients call the model [default: the name of DIR]"},
    VerbFlag{"--rows", "N", "texts that are generated at a time [default: 16]"},
    VerbFlag{"--context", "N",
             "tokens of a text, prompt included; T5: of a prompt [default: as trained]"},
    VerbFlag{"--cache-tokens", "N",
             "tokens of all texts that the cache holds [default: --rows x --context]"},
    VerbFlag{"--max-tokens", "N",
             "new tokens of a text at most [default: --context; T5: as trained]"},
    VerbFlag{"--max-texts", "N", "texts of a request, prompts x samples, at most [default: 128]"},
    VerbFlag{"--max-seconds", "N", "time of a request at most [default: 600]"},
    VerbFlag{"--max-body", "SIZE", "bytes of a request at most [default: 1Mi]"},
    VerbFlag{"--max-answer", "SIZE", "bytes of an answer at most [default: 64Mi]"},
    VerbFlag{"--max-connections", "N", "open at a time [default: 1024]"},
    VerbFlag{"--queue", "N",
             "texts that wait at most; further requests get status 429 [default: 256]"},
    VerbFlag{"--drain-seconds", "N", "for what runs to end after SIGTERM or SIGINT [default: 30]"},
    VerbFlag{"--quiet", "", "no line for each request"},
    kThreadsFlag,
    kDeviceFlag,
    kPrecisionFlag,
    kTensorFlag,
    kPipelineFlag,
    kMegatronTensorFlag,
    kMegatronPipelineFlag,
};

std::chrono::milliseconds seconds(double value) {
  return std::chrono::milliseconds(static_cast<int64_t>(1000 * value));
}

bool is_loopback(const std::string& host) {
  const std::vector<Address> addresses = resolve(host, 0);
  return std::all_of(addresses.begin(), addresses.end(),
                     [](const Address& each) { return each.is_loopback(); });
}

AccessRules access_rules(const FlagValues& flags, const std::string& host) {
  AccessRules rules{.key = api_key(flags, [](const char* name) { return std::getenv(name); }),
                    .hosts = flags.texts("--allow-host")};
  const bool is_local = is_loopback(host);
  BEV_CHECK(is_local || !rules.key.empty() || flags.has("--allow-open"), Usage,
            "--host {}: others than this machine could use the model without a key; legal are "
            "--api-key-file FILE, BEVATRON_API_KEY, or --allow-open",
            host);
  // Elsewhere the names under which clients know this machine are theirs to know.
  if (is_local)
    for (const std::string& name : {std::string("localhost"), std::string("127.0.0.1"),
                                    std::string("[::1]"), host_without_port(host)})
      rules.hosts.push_back(name);
  return rules;
}

std::string name_of_model(const FlagValues& flags) {
  if (flags.has("--model-name")) return flags.text("--model-name");
  const std::filesystem::path dir =
      std::filesystem::absolute(flags.positional().front()).lexically_normal();
  return (dir.has_filename() ? dir : dir.parent_path()).filename().string();
}

void log_request(const HttpRecord& record) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  print_stderr("{:02}:{:02}:{:02} {} {} {}{}{} {:.1f} ms\n", local.tm_hour, local.tm_min,
               local.tm_sec, record.method, record.path.substr(0, 100), record.status,
               record.note.empty() ? "" : " ", record.note, 1000 * record.seconds);
}

EngineLimits decoder_limits(const FlagValues& flags, const ModelFolder& folder) {
  const Config& config = folder.config;
  EngineLimits limits;
  limits.rows = flags.integer("--rows", 16, 1, 65536);
  const int64_t trained = config.train.sequence > 0 ? config.train.sequence : 1024;
  const int64_t most = longest_sequence(folder, 1 << 28);
  const int64_t context = flags.integer("--context", longest_sequence(folder, trained), 2, most);
  limits.length = context;
  if (folder.is_t5()) {
    const int64_t decoder = config.train.decoder_sequence;
    limits.source = context;
    // The start token comes first.
    limits.length =
        1 + flags.integer("--max-tokens", longest_sequence(folder, decoder > 0 ? decoder : trained),
                          1, most);
  }
  if (flags.has("--cache-tokens")) {
    const int64_t page = std::min(limits.page, std::max(limits.length, limits.source));
    // A page has tokens of a source or of the decoder's text, not of both.
    const int64_t least = limits.length + (limits.source > 0 ? limits.source + page : 0);
    limits.pages = div_ceil(flags.integer("--cache-tokens", 0, least, int64_t{1} << 40), page);
  }
  return limits;
}

ServedModel served_model(const FlagValues& flags, const ModelFolder& folder,
                         const EngineLimits& limits, Tokenizer& tokenizer,
                         GenerationService& service) {
  ServedModel model;
  model.name = name_of_model(flags);
  model.created = std::time(nullptr);
  model.tokenizer = &tokenizer;
  model.service = &service;
  model.end = static_cast<int32_t>(folder.config.data.eod);
  if (model.end < 0) model.end = tokenizer.eod_id().value_or(-1);
  model.begin = tokenizer.role_id(TokenRole::Begin).value_or(-1);
  if (folder.is_t5()) {
    model.source.emplace(folder, limits.source);
    model.end = static_cast<int32_t>(folder.decoder_ids.end);
  }
  const int64_t most_tokens = limits.length - (folder.is_t5() ? 1 : 0);
  model.limits = {.context = limits.prompt(),
                  .max_tokens = flags.integer("--max-tokens", most_tokens, 1, most_tokens),
                  .texts = flags.integer("--max-texts", 128, 1, 65536),
                  .vocab = folder.config.model.vocab};
  return model;
}

ModelServerOptions server_options(const FlagValues& flags, const std::string& host) {
  ModelServerOptions options;
  options.http.sizes.body_bytes =
      static_cast<size_t>(flags.size("--max-body", 1 << 20, 1 << 10, 1 << 30));
  options.http.answer_bytes =
      static_cast<size_t>(flags.size("--max-answer", 64 << 20, 1 << 20, int64_t{1} << 40));
  options.http.connections =
      static_cast<size_t>(flags.integer("--max-connections", 1024, 1, 1 << 20));
  options.api.access = access_rules(flags, host);
  options.api.request_limit = seconds(flags.real("--max-seconds", 600, 0.1, 1e6));
  if (!flags.has("--quiet")) options.api.log = log_request;
  options.drain_limit = seconds(flags.real("--drain-seconds", 30, 0, 1e6));
  return options;
}

// What is known before the model is loaded.
struct Serving {
  Serving(const FlagValues& flags, const InferenceRanks& ranks)
      : host(flags.text("--host", "127.0.0.1")),
        options(server_options(flags, host)),
        port(static_cast<int>(flags.integer("--port", 8000, 0, 65535))),
        queue(flags.integer("--queue", 256, 1, 1 << 20)),
        folder(open_model_folder(flags.positional().front())),
        tokenizer(tokenizer_of(folder.config)),
        limits(decoder_limits(flags, folder)),
        use(ranks.use_of(folder, limits.rows, limits.prompt())) {
    BEV_CHECK(tokenizer != nullptr, Usage, "{}; a server needs one", why_no_tokenizer(folder));
    if (folder.is_bert()) {
      check_bert(flags, ranks);
    } else {
      require_generative(folder, "serve");
    }
    if (!ranks.prints()) return;
    for (const std::string& line : folder.passed_over) print_stderr("note: {}\n", line);
    // What others have already taken is known at once.
    listener = listen_on(host, port, EveryAddress::Allowed);
  }

  static void check_bert(const FlagValues& flags, const InferenceRanks& ranks);
  void run(const FlagValues& flags, InferenceEngine& decoder, bool leads, const StopSignal& signal);
  // Serves a BERT.
  void run(const FlagValues& flags, LoadedModel& model, const StopSignal& signal);
  void serve_model(const ServedModel& served, const std::string& about, const StopSignal& signal);

  std::string host;
  ModelServerOptions options;
  int port;
  int64_t queue;
  ModelFolder folder;
  std::unique_ptr<Tokenizer> tokenizer;
  EngineLimits limits;
  InferenceSetup use;
  Socket listener{};  // of the process that serves
};

void Serving::run(const FlagValues& flags, InferenceEngine& decoder, bool leads,
                  const StopSignal& signal) {
  ContinuousBatcher batcher(decoder);
  QueueOptions queued{.rows = limits.rows, .waiting = queue};
  queued.search = [&](std::span<const int32_t> prompt, const SourceText& source,
                      const BeamOptions& beams, FunctionRef<bool()> goes_on) {
    return beam_search(decoder, prompt, source, beams, goes_on);
  };
  if (leads) queued.when_idle = [&] { decoder.ping_followers(); };
  QueuedService service(batcher, queued);
  serve_model(served_model(flags, folder, decoder.limits(), *tokenizer, service),
              format("cache: {}", as_bytes(static_cast<double>(decoder.cache_bytes()))), signal);
  if (service.error() != nullptr) std::rethrow_exception(service.error());
  const ServiceCounts counts = service.counts();
  fmt::print("server ended | texts: {} | tokens: {} |\n", counts.finished, counts.generated_tokens);
}

void Serving::serve_model(const ServedModel& served, const std::string& about,
                          const StopSignal& signal) {
  ModelServerOptions asked = options;
  asked.is_asked_to_end = [&] { return signal.asked() != 0; };
  const Address address = address_here(listener.get());
  ModelServer server(std::move(listener), served, asked);
  fmt::print("serving {} at http://{} | texts at a time: {} | tokens of a text: {} | {} |\n",
             served.name, host_and_port(address.host(), address.port()), limits.rows,
             served.limits.context, about);
  std::fflush(stdout);
  server.run();
}

void Serving::check_bert(const FlagValues& flags, const InferenceRanks& ranks) {
  for (const std::string_view flag : {"--cache-tokens", "--max-tokens"})
    BEV_CHECK(!flags.has(flag), Usage,
              "{} has no effect on a BERT, which generates no text: it answers /v1/embeddings and "
              "/v1/fill-mask",
              flag);
  BEV_CHECK(ranks.size() == 1, Usage,
            "a BERT is served by one rank, not {}; use --tensor 1, --pipeline 1", ranks.size());
}

void Serving::run(const FlagValues& flags, LoadedModel& model, const StopSignal& signal) {
  BertText text(folder);
  EncoderService service(model, queue);
  ServedModel served;
  served.name = name_of_model(flags);
  served.created = std::time(nullptr);
  served.bert = &text;
  served.encoder = &service;
  served.has_lm_head = folder.has_lm_head;
  served.limits = {.context = limits.length,
                   .max_tokens = limits.length,
                   .texts = flags.integer("--max-texts", 128, 1, 65536),
                   .vocab = folder.config.model.vocab};
  serve_model(served, folder.has_lm_head ? "embeddings and masks" : "embeddings", signal);
  if (service.error() != nullptr) std::rethrow_exception(service.error());
  const ServiceCounts counts = service.counts();
  fmt::print("server ended | texts: {} | tokens: {} |\n", counts.finished, counts.prompt_tokens);
}

}  // namespace

int serve(std::span<const std::string> args) {
  return run_inference_verb(
      {.name = "serve",
       .summary = "Serves a trained model over HTTP: the addresses of OpenAI's completions and of "
                  "Megatron-LM's server, and a page to try it; of a BERT /v1/embeddings and "
                  "/v1/fill-mask. DIR is the folder of a `bevatron "
                  "train`, one of its checkpoints or a Hugging Face model.",
       .flags = kServeFlags,
       .positional = "DIR",
       .min_positional = 1,
       .max_positional = 1},
      args, [](const FlagValues& flags, InferenceRanks& ranks) {
        Serving serving(flags, ranks);
        StopSignal signal;
        // Until a model is there nothing is to be ended well; who waits for the server must notice.
        signal.expect_others();
        ranks.run(serving.folder, serving.use, [&](const RankContext& place) {
          LoadedModel model(serving.folder, serving.use, place.device, place.world);
          if (serving.folder.is_bert()) {
            signal.defer();
            return serving.run(flags, model, signal);
          }
          InferenceEngine decoder(model, serving.limits);
          signal.defer();
          if (!place.is_first) return decoder.follow_leader();
          if (ranks.size() > 1) decoder.lead_ranks();
          serving.run(flags, decoder, ranks.size() > 1, signal);
        });
      });
}

namespace {

constexpr size_t kLeast = 16, kMost = 4096;

std::string checked(std::string key, const std::string& where) {
  while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  BEV_CHECK(key.size() >= kLeast && key.size() <= kMost &&
                std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7F; }),
            Usage, "the key in {} must be {} to {} visible characters of ASCII", where, kLeast,
            kMost);
  return key;
}

}  // namespace

std::string api_key(const FlagValues& flags, const Getenv& getenv) {
  if (flags.has("--api-key-file")) {
    const std::string path = flags.path("--api-key-file");
    struct stat status{};
    BEV_CHECK(::stat(path.c_str(), &status) == 0, Usage, "--api-key-file {}: {}", path,
              std::strerror(errno));
    BEV_CHECK((status.st_mode & 077) == 0, Usage,
              "--api-key-file: others can read {} (mode {:04o}); legal is mode 0600: chmod 600 {}",
              path, status.st_mode & 07777, path);
    return checked(read_text(path, kMost + 2), path);
  }
  const char* value = getenv("BEVATRON_API_KEY");
  return value != nullptr ? checked(value, "BEVATRON_API_KEY") : "";
}

}  // namespace bev::app
