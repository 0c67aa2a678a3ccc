#include "app/cli/man_page.h"

#include <array>

#include "app/cli/build_info.h"
#include "app/cli/dispatch.h"
#include "app/cli/shared_flags.h"
#include "base/format.h"

namespace bev::app {

namespace {

// A tagged paragraph: the tag in bold, its argument in italics, then the text.
struct ManEntry {
  std::string_view tag;
  std::string_view argument;
  std::string_view text;
};

constexpr std::array kManSynopsis{
    ManEntry{"bevatron", "VERB [CONFIG.toml] [--section.field VALUE ...]", ""},
    ManEntry{"bevatron help", "[VERB | configuration | man]", ""},
    ManEntry{"bevatron completion", "bash | zsh", ""},
};

constexpr std::array kManOptions{
    ManEntry{"CONFIG.toml", "", "Configuration file. Flags override its values."},
    ManEntry{
        "--section.field", "VALUE",
        "Set a field of the configuration. `bevatron help configuration` lists all fields, and "
        "the Megatron-LM flags that set them."},
    ManEntry{"--print-config", "",
             "Print the complete configuration and the source of each value, then exit."},
    ManEntry{kDeviceFlag.name, kDeviceFlag.value, kDeviceFlag.help},
    ManEntry{"-h, --help", "",
             "Print the flags of a verb, then exit. Without a verb: the overview."},
    ManEntry{"--version", "", "Same as `bevatron version`. Without a verb only."},
};

constexpr std::array kManEnvironment{
    ManEntry{"CUDA_VISIBLE_DEVICES", "", "GPUs that the program may use."},
    ManEntry{"CUDA_HOME, CUDA_PATH, LD_LIBRARY_PATH", "",
             "Folders to search for NVIDIA's libraries."},
    ManEntry{"XDG_CACHE_HOME", "",
             "Parent of the folder bevatron, which holds autotuning results [default: ~/.cache]."},
    ManEntry{
        "RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT", "",
        "Rank of this process, set by a launcher such as torchrun. The variables of Open MPI and "
        "Slurm work too."},
    ManEntry{"BEVATRON_JOB, BEVATRON_RESTART", "",
             "Name of the job and number of earlier attempts, set by bevatron launch."},
    ManEntry{
        "BEVATRON_SECRET, BEVATRON_SECRET_FILE", "",
        "Secret with which the ranks of a job authenticate each other, or a file that holds it "
        "[default: ~/.bevatron/secret]."},
    ManEntry{"BEVATRON_BIND", "", "none: do not bind ranks to CPUs [default: auto]."},
    ManEntry{"BEVATRON_API_KEY", "", "Key that clients of bevatron serve must send."},
    ManEntry{"BEVATRON_ISA", "",
             "CPU kernels: portable, avx2 or avx512 [default: the best that the CPU supports]."},
    ManEntry{"BEVATRON_NO_CUDNN", "", "If set, attention on a GPU does not use cuDNN."},
};

constexpr std::array kManFiles{
    ManEntry{
        "PREFIX/share/bevatron/configs", "",
        "Recipes: complete configurations to start from. PREFIX is the folder that the program "
        "was installed into, such as /usr/local."},
    ManEntry{"PREFIX/lib/bevatron", "", "Plug-ins for communication by Open MPI and Gloo."},
    ManEntry{"RUN/config.toml", "",
             "Configuration of a run. RUN is the run folder, the value of train.output."},
    ManEntry{"RUN/metrics.jsonl", "", "Metrics of a run, one JSON object per line."},
    ManEntry{"RUN/checkpoints, RUN/model", "",
             "Checkpoints of a run, and the trained model in Hugging Face's format."},
    ManEntry{"~/.bevatron/secret", "", "Secret of the jobs of a user, created when first needed."},
};

std::string man_section(std::string_view name) { return format(".SH {}\n", name); }

// One tagged paragraph.
std::string man_entry(std::string_view tag, std::string_view argument, std::string_view text) {
  std::string out = format(".TP\n\\fB{}\\fR", roff_text(tag));
  if (!argument.empty()) out += format(" \\fI{}\\fR", roff_text(argument));
  return out + "\n" + roff_text(text) + "\n";
}

std::string man_list(std::string_view name, std::span<const ManEntry> list) {
  std::string out = man_section(name);
  for (const ManEntry& each : list) out += man_entry(each.tag, each.argument, each.text);
  return out;
}

std::string man_synopsis() {
  std::string out = man_section("SYNOPSIS");
  for (const ManEntry& use : kManSynopsis)
    out += format("{}\\fB{}\\fR {}\n", out.ends_with("SYNOPSIS\n") ? "" : ".br\n",
                  roff_text(use.tag), roff_text(use.argument));
  return out;
}

std::string man_commands(std::span<const Verb> verbs) {
  std::string out = man_section("COMMANDS");
  const auto separated = [](std::string_view parts) {
    std::string text;
    for (const char c : parts) text += c == ' ' ? std::string(" | ") : std::string(1, c);
    return text;
  };
  for (const Verb& verb : verbs) out += man_entry(verb.name, separated(verb.parts), verb.summary);
  out +=
      man_entry("completion", "bash | zsh", "a script that lets the shell complete command lines");
  out += man_entry("help", "[VERB]", "the overview, or the flags of a verb");
  return out;
}

std::string man_exit_status() {
  std::string out = man_section("EXIT STATUS");
  for (const ExitCode& each : exit_codes())
    out += man_entry(format("{}", each.code), "", each.meaning);
  return out;
}

}  // namespace

std::string roff_text(std::string_view text) {
  std::string out;
  bool starts_line = true;
  for (const char c : text) {
    if (starts_line && (c == '.' || c == '\'')) out += "\\&";
    starts_line = c == '\n';
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '\'': out += "\\(aq"; break;
      case '"': out += "\\(dq"; break;
      case '`': out += "\\(ga"; break;
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      default: out += c;
    }
  }
  return out;
}

std::string man_page(std::span<const Verb> verbs) {
  std::string out = format(".TH BEVATRON 1 \"\" \"bevatron {}\" \"User Commands\"\n",
                           roff_text(program_version()));
  out += man_section("NAME") + "bevatron \\- train large language models\n";
  out += man_synopsis();
  out +=
      man_section("DESCRIPTION") +
      roff_text(
          "Bevatron trains, evaluates and serves transformer language models, on CPUs and NVIDIA "
          "GPUs, on one rank or many. A run is described by a TOML file, by flags, or by both. "
          "Every field of the configuration is a flag; Megatron-LM flags work too.") +
      "\n";
  out += man_commands(verbs) + ".PP\n" +
         roff_text("To list the flags of a verb, run `bevatron help VERB`.") + "\n";
  out += man_list("OPTIONS", kManOptions);
  out += man_exit_status();
  out += man_list("ENVIRONMENT", kManEnvironment);
  out += man_list("FILES", kManFiles);
  return out + man_section("SEE ALSO") + "\\fBmpirun\\fR(1), \\fBsrun\\fR(1)\n";
}

}  // namespace bev::app
