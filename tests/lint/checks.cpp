#include "lint/checks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <sstream>
#include <utility>

#include "lint/mutant_list.h"
#include "lint/source_text.h"
#include "lint/source_tree.h"
#include "lint/structure_checks.h"

namespace bev::lint {

namespace fs = std::filesystem;

namespace {

// --- The tables: this is where the rules are changed. ---

// Who may include the headers of a library that is not ours. A header belongs to the first row
// whose prefix it begins with; `users` are files, or folders when they end with a slash.
struct Vendor {
  std::string_view prefix;
  Names users;
};
const std::vector<Vendor>& vendors() {
  static const std::vector<Vendor> rows{
      {"fmt/", {"src/base/format.h"}},
      {"toml++/", {"src/config/parse/toml.cpp"}},
      {"nlohmann/", {"src/base/json.h", "src/base/json.cpp", "tests/fuzz/jsonl_reader_fuzz.cpp"}},
      {"sentencepiece_",
       {"src/text/sentencepiece/sentencepiece_tokenizer.cpp",
        "src/text/sentencepiece/sentencepiece_trainer.cpp"}},
      {"openssl/", {"src/base/crypto.cpp", "src/net/secure_link.cpp"}},
      {"xxhash.h", {"src/checkpoint/checksum.cpp"}},
      {"zlib.h", {"src/data/preprocess/gzip.cpp"}},
      {"lzma.h", {"src/data/preprocess/xz.cpp"}},
      {"zstd.h", {"src/data/preprocess/zstd.cpp"}},
      {"histedit.h", {"src/app/cli/line_editor.cpp"}},
      {"tensorboard_event.pb.h", {"src/report/tensorboard/event_message.cpp"}},
      {"google/protobuf/", {}},
      {"page_html.h", {"src/serve/api_server.cpp"}},
      {"sentencepiece_processor.h", {"src/text/sentencepiece/sentencepiece_tokenizer.cpp"}},
      {"sentencepiece_trainer.h", {"src/text/sentencepiece/sentencepiece_trainer.cpp"}},
      {"cuda_", {"src/device/cuda/", "src/ops/cuda/", "src/comm/cuda/"}},
      {"nccl.h", {"src/comm/cuda/nccl_library.h"}},
      {"cublasLt.h", {"src/ops/cuda/"}},
      {"cudnn", {"src/ops/cuda/attention/cudnn_attention.cpp"}},
      {"nvml.h", {"src/device/cuda/"}},
      {"mpi.h", {"src/comm/mpi/"}},
      {"gloo/", {"src/comm/gloo/"}},
      {"gtest/", {"tests/"}},
      {"immintrin.h", {"src/ops/cpu/"}},
  };
  return rows;
}

// Headers of the operating system, which every file may include.
constexpr std::array kSystemPrefixes = {"sys/", "linux/", "arpa/", "net/", "netinet/"};
constexpr std::array kSystemHeaders = {
    "dirent.h",  "dlfcn.h", "errno.h",  "execinfo.h", "fcntl.h",  "glob.h",   "grp.h",
    "ifaddrs.h", "link.h",  "netdb.h",  "poll.h",     "pwd.h",    "sched.h",  "signal.h",
    "spawn.h",   "stdio.h", "stdlib.h", "termios.h",  "unistd.h", "cxxabi.h", "pthread.h"};

// Words that say nothing about what a file holds.
constexpr std::array kForbiddenFileWords = {"util",    "utils", "common",  "helper",
                                            "helpers", "misc",  "manager", "managers"};
// Words that say that a name was not thought about, or that there are two generations of a thing.
constexpr std::array kForbiddenNameWords = {"impl",     "helper", "helpers", "manager",
                                            "managers", "util",   "utils"};

// A folder with more files has sub-folders whose names a newcomer would guess.
constexpr size_t kMostFilesInAFolder = 40;

// Files by concept, not by function: few files may be small.
constexpr size_t kSmallFileLines = 60, kMostSmallFiles = 350;

// An op has one name for its contract, its backends and its module.
constexpr std::array<std::string_view, 5> kOpPlaces = {
    "src/ops", "src/ops/reference", "src/ops/cpu/", "src/ops/cuda/", "src/model"};

// Types that have one name on purpose: an op and its module; the CPU and the CUDA backend of a
// thing; the vectors of every instruction set.
constexpr std::array<std::string_view, 7> kSharedTypeNames = {
    "Attention", "Embedding", "DropoutDraws", "HeadRows", "SmallMProblem", "Vec", "WordVec"};

// Words of our own that names no longer use, and the terms that replaced them. To add a row, rename
// what is left in src/ first, then write the words of the old name in lower case with blanks
// between: "found file" finds FoundFile and found_file_. A single word must have no ordinary
// meaning.
constexpr std::array kPrivateTerms = {
    PrivateTerm{"alone environment", "single-rank environment"},
    PrivateTerm{"any model", "default model"},
    PrivateTerm{"assembly", "training state"},
    PrivateTerm{"beat", "heartbeat"},
    PrivateTerm{"begin recording", "begin capture"},
    PrivateTerm{"beside", "on a second stream, sibling or adjacent"},
    PrivateTerm{"blame", "fail with"},
    PrivateTerm{"choice rule", "sampling"},
    PrivateTerm{"choose tokens", "sample tokens"},
    PrivateTerm{"declare alone", "declare in own bucket"},
    PrivateTerm{"decode machine", "decode node message"},
    PrivateTerm{"encode machine", "encode node message"},
    PrivateTerm{"end recording", "end capture"},
    PrivateTerm{"exchange stream", "communication stream"},
    PrivateTerm{"few row", "small M"},
    PrivateTerm{"first machine", "first node"},
    PrivateTerm{"flag verb", "verb spec"},
    PrivateTerm{"found file", "untrusted file"},
    PrivateTerm{"grant", "acknowledge"},
    PrivateTerm{"guest", "node client"},
    PrivateTerm{"hear", "receive"},
    PrivateTerm{"heard", "received"},
    PrivateTerm{"hub", "job state"},
    PrivateTerm{"is divided", "is sharded"},
    PrivateTerm{"issued step", "submitted step"},
    PrivateTerm{"joins whole", "can fuse residual"},
    PrivateTerm{"json place", "JSON cursor"},
    PrivateTerm{"known product", "tuned GEMM"},
    PrivateTerm{"lease", "parameter gather"},
    PrivateTerm{"leases", "parameter gather"},
    PrivateTerm{"lent", "gathered"},
    PrivateTerm{"look into", "diagnose"},
    PrivateTerm{"lt products", "cuBLASLt GEMM"},
    PrivateTerm{"machine choice", "node choice"},
    PrivateTerm{"machine guest", "node client"},
    PrivateTerm{"machine host", "node server"},
    PrivateTerm{"machine message", "node message"},
    PrivateTerm{"meeting", "barrier or rendezvous"},
    PrivateTerm{"meetings", "barriers"},
    PrivateTerm{"mid row", "medium M"},
    PrivateTerm{"news", "change or event"},
    PrivateTerm{"odd steps", "bad steps"},
    PrivateTerm{"passed through", "streamed buckets"},
    PrivateTerm{"phantom", "planning"},
    PrivateTerm{"placed model", "rank model"},
    PrivateTerm{"product cache", "GEMM autotune cache"},
    PrivateTerm{"product kind", "GEMM key"},
    PrivateTerm{"product tuner", "GEMM autotuner"},
    PrivateTerm{"recorded work", "graph cache"},
    PrivateTerm{"recording", "CUDA graph"},
    PrivateTerm{"rehearsal", "autotuning or dry run"},
    PrivateTerm{"rehearse", "autotune"},
    PrivateTerm{"rehearsed", "autotuned"},
    PrivateTerm{"replay", "graph launch"},
    PrivateTerm{"replays", "graph launches"},
    PrivateTerm{"roll call", "rendezvous wait"},
    PrivateTerm{"said", "reported"},
    PrivateTerm{"say", "print"},
    PrivateTerm{"says", "reports"},
    PrivateTerm{"short gradients", "bf16 gradients"},
    PrivateTerm{"side work", "poll source"},
    PrivateTerm{"silence", "timeout"},
    PrivateTerm{"silence watch", "heartbeat monitor"},
    PrivateTerm{"stage range", "stage layers"},
    PrivateTerm{"staged product", "shared-memory GEMM"},
    PrivateTerm{"start anew", "reinitialize"},
    PrivateTerm{"tell", "report or notify"},
    PrivateTerm{"text forms", "output formats"},
    PrivateTerm{"time mark", "timer event"},
    PrivateTerm{"told", "reported"},
    PrivateTerm{"touchy", "precision-sensitive"},
    PrivateTerm{"wait meter", "wait timer"},
    PrivateTerm{"wake signal", "event fd"},
    PrivateTerm{"weights checkpoint", "release"},
    PrivateTerm{"whole row loss", "cross entropy of full rows"},
    PrivateTerm{"wish", "request"},
    PrivateTerm{"wishes", "requests"},
};

// Sources that a unity build compiles alone, because they have compiler options or definitions of
// their own, or belong to a plug-in. The comparison is with the beginning of the path for folders
// and with its end for files.
constexpr std::array<std::string_view, 10> kSeparateUnits = {
    "_avx2.cpp",     "_avx512.cpp",      "_portable.cpp",        "src/comm/gloo/",
    "src/comm/mpi/", "src/comm/plugin/", "/cudnn_attention.cpp", "tests/fuzz/",
    "tests/lint/",   "tests/support/"};

// --- What the checks share. ---

template <class Range>
bool contains(const Range& range, std::string_view value) {
  return std::any_of(std::begin(range), std::end(range),
                     [&](std::string_view each) { return each == value; });
}

// --- layers ---

// A folder of src/ and the folders it may include, as its link line in src/CMakeLists.txt states
// them. That file is the one table of layers; a link to a later line would make a cycle.
struct Layer {
  std::string folder;
  int line;
  std::set<std::string> may_include;  // itself, what it links, and what that may include
};

// The layers in the order of the file. Links to folders that have no earlier line go to `findings`.
std::vector<Layer> read_layers(const fs::path& root, std::vector<Finding>& findings) {
  const std::string table = "src/CMakeLists.txt";
  std::vector<Layer> layers;
  int number = 0;
  std::istringstream lines(fs::exists(root / table) ? read_file(root / table) : "");
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string_view call = "bev_library(";
    if (!line.starts_with(call)) continue;
    std::istringstream words(line.substr(call.size(), line.find(')') - call.size()));
    Layer layer{.folder = {}, .line = number, .may_include = {}};
    words >> layer.folder;
    layer.may_include.insert(layer.folder);
    for (std::string link; words >> link;) {
      const std::string_view own = "bev::";
      if (!link.starts_with(own)) continue;  // LINK itself, or a library that is not ours
      const auto earlier = std::find_if(layers.begin(), layers.end(), [&](const Layer& each) {
        return each.folder == link.substr(own.size());
      });
      if (earlier == layers.end()) {
        findings.push_back({table, number, link + " does not stand on an earlier line"});
      } else {
        layer.may_include.insert(earlier->may_include.begin(), earlier->may_include.end());
      }
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::string first_folder(std::string_view path) {
  const size_t slash = path.find('/');
  return std::string(slash == std::string_view::npos ? "" : path.substr(0, slash));
}

void look_at_layers(const std::vector<Layer>& layers, const Source& source) {
  const std::string inside = source.path.substr(std::string_view("src/").size());
  if (inside == "main.cpp") return;
  const auto row_of = [&](const std::string& folder) {
    return std::find_if(layers.begin(), layers.end(),
                        [&](const Layer& layer) { return layer.folder == folder; });
  };
  const auto own = row_of(first_folder(inside));
  if (own == layers.end()) {
    source.report(0, "its folder has no bev_library line in src/CMakeLists.txt");
    return;
  }
  for (const Include& include : includes(source.text)) {
    if (include.angled) continue;
    const std::string target = first_folder(include.path);
    if (row_of(target) == layers.end()) {
      source.report(include.line, "\"" + include.path + "\" is not a path from src/");
    } else if (!own->may_include.contains(target)) {
      source.report(include.line, own->folder + " may not include " + target +
                                      ": its link line does not lead there");
    }
  }
}

Report check_layers(const fs::path& root) {
  std::vector<Finding> findings;
  const std::vector<Layer> layers = read_layers(root, findings);
  Report report =
      for_each_source(root, {"src"}, [&](const Source& source) { look_at_layers(layers, source); });
  report.findings.insert(report.findings.begin(), findings.begin(), findings.end());
  return report;
}

// --- model_words ---

// Whether the name is a call of a member function without arguments.
bool is_member_call(std::string_view line, const Identifier& name) {
  const std::string_view before = line.substr(0, name.begin);
  return (before.ends_with(".") || before.ends_with("->")) &&
         line.substr(name.begin + name.text.size()).starts_with("()");
}

// Whether the name is the question for a tensor's number of dims: t.rank(), t->rank(), kMaxRank.
bool is_tensor_rank(std::string_view line, const Identifier& name) {
  return name.text == "kMaxRank" || (name.text == "rank" && is_member_call(line, name));
}

// Inference has its own block in src/infer; comments count, too.
void look_for_inference(const Source& source) {
  if (source.path.starts_with("src/model/family/")) return;
  for (size_t i = 0; i < source.text.raw.size(); ++i) {
    std::string line = source.text.raw[i];
    for (char& c : line) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const char* word : {"infer", "decod", "kvcache", "kv_cache", "kv cache",
                             "weights_constant", "b_is_constant", "fusednorm"}) {
      if (line.find(word) != std::string::npos) {
        source.report(static_cast<int>(i) + 1, std::string(word) + " is a matter of src/infer");
        break;
      }
    }
  }
}

// A module depends neither on its device nor on the layout of ranks; comments count, too.
void look_for_layout(const Source& source) {
  if (source.path.starts_with("src/model/family/")) return;
  for (size_t i = 0; i < source.text.raw.size(); ++i) {
    const int number = static_cast<int>(i) + 1;
    const std::string& line = source.text.raw[i];
    for (const Identifier& name : identifiers(line)) {
      const bool asks =
          (name.text == "kind" || name.text == "layout") && is_member_call(line, name);
      const bool says = name.text == "rank" || name.text == "ranks" || name.text == "pipeline";
      if (asks || (says && !is_tensor_rank(line, name))) {
        source.report(number, name.text + " is no matter of a module");
        break;
      }
    }
  }
}

// Only a family reads the configuration; modules read their specification.
void look_for_configuration(const Source& source) {
  if (source.path.starts_with("src/model/family/")) return;
  for (const Include& include : includes(source.text)) {
    if (include.path.starts_with("config/") && include.path != "config/choices.h")
      source.report(include.line, include.path + " is a matter of src/model/family");
  }
  for (size_t i = 0; i < source.text.code.size(); ++i) {
    for (const Identifier& name : identifiers(source.text.code[i])) {
      if (name.text == "Config" || name.text == "DeviceKind")
        source.report(static_cast<int>(i) + 1, name.text + " is a matter of src/model/family");
    }
  }
}

void look_at_model_words(const Source& source) {
  look_for_inference(source);
  look_for_configuration(source);
  look_for_layout(source);
  for (size_t i = 0; i < source.text.code.size(); ++i) {
    const std::string& line = source.text.code[i];
    const int number = static_cast<int>(i) + 1;
    const size_t mark = line.find_first_not_of(" \t");
    if (mark != std::string::npos && line[mark] == '#') {
      const std::vector<Identifier> names = identifiers(line);
      const std::string directive = names.empty() ? "" : names.front().text;
      if (directive.starts_with("if") || directive.starts_with("el")) {
        source.report(number, "#" + directive);
      }
    }
    for (const Identifier& name : identifiers(line)) {
      const std::vector<std::string> words = words_of(name.text);
      const bool rank = contains(words, "rank") || contains(words, "ranks");
      if ((rank && !is_tensor_rank(line, name)) || contains(words, "communicator")) {
        source.report(number, name.text);
      }
    }
  }
  for (const Include& include : includes(source.text)) {
    if (contains(words_of(include.path), "communicator")) source.report(include.line, include.path);
  }
}

Report check_model_words(const fs::path& root) {
  return for_each_source(root, {"src/model"}, look_at_model_words);
}

// --- vendor_includes ---

bool is_system(std::string_view header) {
  // The standard library's headers have neither a folder nor an ending.
  if (header.find_first_of("/.") == std::string_view::npos) return true;
  return contains(kSystemHeaders, header) ||
         std::any_of(kSystemPrefixes.begin(), kSystemPrefixes.end(),
                     [&](std::string_view prefix) { return header.starts_with(prefix); });
}

bool may_use(const Vendor& vendor, std::string_view path) {
  return std::any_of(vendor.users.begin(), vendor.users.end(), [&](std::string_view user) {
    return user.ends_with("/") ? path.starts_with(user) : path == user;
  });
}

void look_at_vendor_includes(const Source& source) {
  for (const Include& include : includes(source.text)) {
    const auto vendor = std::find_if(vendors().begin(), vendors().end(), [&](const Vendor& each) {
      return include.path.starts_with(each.prefix);
    });
    if (vendor != vendors().end()) {
      if (!may_use(*vendor, source.path)) {
        source.report(include.line, "<" + include.path + "> is not for this file");
      }
    } else if (include.angled && !is_system(include.path)) {
      source.report(include.line, "<" + include.path + "> has no row in the table of vendors");
    }
  }
}

Report check_vendor_includes(const fs::path& root) {
  return for_each_source(root, {"src", "tests"}, look_at_vendor_includes);
}

// --- no_forbidden_names ---

bool is_forbidden_name(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  // A vector v2 beside v0 and v1 is a plain name; AdamV2 and adam_v2 are a second generation.
  const bool generation = words.size() > 1 && (words.back() == "v2" || words.back() == "v3");
  return generation || std::any_of(words.begin(), words.end(), [](const std::string& word) {
           return contains(kForbiddenNameWords, word);
         });
}

void look_at_names(const Source& source) {
  for (const fs::path& part : fs::path(source.path)) {
    const std::string stem = part.stem().string();
    for (const std::string& word : words_of(stem)) {
      if (contains(kForbiddenFileWords, word)) {
        source.report(0, "'" + word + "' says nothing about what " + part.string() + " holds");
      }
    }
    if (stem == "core") source.report(0, "'core' says nothing about what it holds");
  }
  for (size_t i = 0; i < source.text.code.size(); ++i) {
    // An include names the file of another, which is judged where it stands.
    if (source.text.code[i].starts_with("#include")) continue;
    for (const Identifier& name : identifiers(source.text.code[i])) {
      if (is_forbidden_name(name.text)) source.report(static_cast<int>(i) + 1, name.text);
    }
  }
}

Report check_no_forbidden_names(const fs::path& root) {
  return for_each_source(root, {"src", "tests"}, look_at_names);
}

// --- ascii ---

// The files people write: sources, scripts, build files, configurations. Prose has its own habits.
std::vector<fs::path> written_files(const fs::path& root) {
  std::vector<fs::path> files;
  for (const char* name : {"CMakeLists.txt", "CMakePresets.json", "Makefile"}) {
    if (fs::is_regular_file(root / name)) files.push_back(root / name);
  }
  for (const char* folder : {"src", "tests", "cmake", "scripts", "configs", ".ci"}) {
    for (const fs::path& path : files_below(root / folder)) {
      const std::string extension = path.extension().string();
      const bool script =
          folder == std::string_view("scripts") || folder == std::string_view(".ci");
      if (is_cpp(path) || script || extension == ".cmake" || extension == ".toml" ||
          path.filename() == "CMakeLists.txt") {
        files.push_back(path);
      }
    }
  }
  return files;
}

Report check_ascii(const fs::path& root) {
  Report report;
  for (const fs::path& path : written_files(root)) {
    ++report.files;
    const std::string text = read_file(path);
    const std::vector<std::string> lines = source_text(text).raw;
    const auto found = [&](size_t line, const char* what) {
      report.findings.push_back({path_from(root, path), static_cast<int>(line), what});
    };
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string& line = lines[i];
      if (std::any_of(line.begin(), line.end(), [](char c) { return (c & 0x80) != 0; })) {
        found(i + 1, "not ASCII");
      }
      if (is_cpp(path) && line.find('\t') != std::string::npos) found(i + 1, "a tab");
      if (!line.empty() && std::string_view(" \t\r").find(line.back()) != std::string_view::npos) {
        found(i + 1, "blanks at the end of the line");
      }
    }
    if (!text.empty() && text.back() != '\n') found(lines.size(), "no newline at the end");
  }
  return report;
}

constexpr std::array kChecks = {
    Check{"layers", "A folder of src/ includes only itself and what its link line leads to.",
          check_layers},
    Check{"model_words",
          "src/model knows no ranks, no communicators, no device, no layout, no inference and no "
          "conditional compilation; only families read the configuration.",
          check_model_words},
    Check{"vendor_includes", "A library that is not ours is included where its row says only.",
          check_vendor_includes},
    Check{"no_forbidden_names", "Names say what a thing is.", check_no_forbidden_names},
    Check{"ascii", "ASCII, no tabs in C++, no blanks at line ends, a newline at the end.",
          check_ascii},
    Check{"mutants",
          "A fault of tests/mutants has a function, a statement that is in it once, and a test.",
          check_mutant_list},
    Check{"folder_size", "A folder is small enough to be read at a glance.",
          [](const fs::path& root) { return check_folder_size(root, kMostFilesInAFolder); }},
    Check{"small_files", "A file holds a concept.",
          [](const fs::path& root) {
            return check_small_files(root, kSmallFileLines, kMostSmallFiles);
          }},
    Check{"file_names", "No two files of src/ have the same name; an op has one name everywhere.",
          [](const fs::path& root) { return check_file_names(root, kOpPlaces); }},
    Check{"type_names", "No two types have the same name.",
          [](const fs::path& root) { return check_type_names(root, kSharedTypeNames); }},
    Check{"include_order", "The own header first, then system headers, then project headers.",
          check_include_order},
    Check{"private_terms", "Names use the terms of the field.",
          [](const fs::path& root) { return check_private_terms(root, kPrivateTerms); }},
    Check{"parameter_names", "Only src/model and src/convert spell the names of parameters.",
          check_parameter_names},
    Check{"unity_names",
          "Sources that a unity build puts together share no name in their unnamed namespaces.",
          [](const fs::path& root) { return check_unity_names(root, kSeparateUnits); }},
};

}  // namespace

std::span<const Check> all_checks() { return kChecks; }

}  // namespace bev::lint
