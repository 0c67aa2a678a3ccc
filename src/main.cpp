// The table of sub-commands, and the only place that prints errors.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "app/cli/console.h"
#include "app/cli/dispatch.h"
#include "app/cli/verbs.h"
#include "base/error.h"
#include "base/format.h"

namespace {

using bev::app::Verb;

constexpr std::array kVerbs{
    Verb{"corpus", "write stories whose entropy is known exactly", bev::app::corpus},
    Verb{"preprocess", "text to token files", bev::app::preprocess},
    Verb{"merge", "several token files to one", bev::app::merge},
    Verb{"tokenize", "text to token ids, to look at or to pipe", bev::app::tokenize},
    Verb{"detokenize", "token ids to text", bev::app::detokenize},
    Verb{"tokenizer", "make a vocabulary from text, or look at one", bev::app::tokenizer,
         "train info eval"},
    Verb{"train", "train a model", bev::app::train},
    Verb{"launch", "start several processes of a verb, as torchrun does", bev::app::launch},
    Verb{"status", "what a run is doing, how far it is, whether all is well", bev::app::status},
    Verb{"eval", "loss of a trained model on a text or token file", bev::app::eval},
    Verb{"generate", "continue a prompt with a trained model, or fill its masks",
         bev::app::generate},
    Verb{"embed", "text embeddings by a BERT", bev::app::embed},
    Verb{"serve", "a trained model behind HTTP", bev::app::serve},
    Verb{"convert", "models from and to Hugging Face's format, and from Megatron-LM",
         bev::app::convert, "hf-to-bev bev-to-hf megatron-to-bev"},
    Verb{"inspect", "what a token file, model, checkpoint or configuration holds",
         bev::app::inspect},
    Verb{"checkpoint", "list, verify, prune or export checkpoints", bev::app::checkpoint,
         "list verify prune export"},
    Verb{"diff", "how two checkpoints or models differ", bev::app::diff},
    Verb{"plot", "draw the loss and other curves of runs", bev::app::plot},
    Verb{"plan", "memory, parameters and work of a training, without running it", bev::app::plan},
    Verb{"verify", "whether two layouts of a training compute the same", bev::app::verify},
    Verb{"bench", "measure operations and whole steps", bev::app::bench},
    Verb{"doctor", "what this machine has for training, what is wrong and how to fix it",
         bev::app::doctor},
    Verb{"version", "version, build, processor, GPUs", bev::app::version},
};

// A mapped file that somebody makes shorter while it is read ends the process with this signal;
// only what is safe in a handler happens here.
extern "C" void report_lost_file(int) {
  constexpr char kMessage[] =
      "bevatron: error: a file became shorter, or its disk failed, while it was being read\n"
      "  (data error, exit code 3)\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  ::_exit(3);
}

int print_error(const bev::Error& error) {
  const int code = bev::exit_code(error.kind);
  bev::app::print_stderr("bevatron: error: {}\n", error.what());
  for (auto activity = error.context.rbegin(); activity != error.context.rend(); ++activity)
    bev::app::print_stderr("  while {}\n", *activity);
  if (error.kind == bev::ErrorKind::Internal)
    bev::app::print_stderr("  at {}:{}; this is a bug in bevatron, please report it\n",
                           error.where.file_name(), error.where.line());
  bev::app::print_stderr("  ({} error, exit code {})\n", bev::name_of(error.kind), code);
  return code;
}

// A descriptor that was closed by whoever started the program would be given to the next file that
// is opened, and the log would go into it. Writing to stdout still fails, as it should; what is
// said on stderr gets lost.
void hold_standard_descriptors() {
  constexpr std::array kModes{O_RDONLY, O_RDONLY, O_WRONLY};
  for (int descriptor = 0; descriptor < 3; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF)
      // The smallest free number is this one.
      (void)!::open("/dev/null", kModes[static_cast<size_t>(descriptor)]);
}

}  // namespace

int main(int argc, char** argv) {
  using bev::Error;
  using bev::ErrorKind;
  hold_standard_descriptors();
  std::signal(SIGBUS, report_lost_file);
  // A file that may not grow further is an error of the write, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
    const int code = bev::app::dispatch(kVerbs, args);
    // Results on a full disk are not results, even when the disk has room again by now.
    if (std::fflush(stdout) != 0)
      throw Error(ErrorKind::Data,
                  bev::format("cannot write the output: {}", std::strerror(errno)));
    if (std::ferror(stdout) != 0)
      throw Error(ErrorKind::Data, "a part of the output could not be written");
    return code;
  } catch (const Error& error) {
    std::fflush(stdout);
    return print_error(error);
  } catch (const std::bad_alloc&) {
    return print_error(Error(ErrorKind::Device, "there is not enough memory on this machine"));
  } catch (const std::system_error& error) {
    return print_error(Error(ErrorKind::Data, error.what()));
  } catch (const std::exception& error) {
    return print_error(Error(ErrorKind::Internal, error.what()));
  }
}
