// The program under test as a process, and the files that command lines of others name.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace bev::golden {

// The exit code of `bevatron ARGS` in a folder; its output goes into the file `log` there. `until`:
// the program is asked to end (SIGTERM) as soon as it has printed this.
int run_program(const std::vector<std::string>& args, const std::filesystem::path& folder,
                std::string_view until = {});

// The folder with gpt2/vocab.json, in `dir`, or next to it or a folder above it; empty: none.
std::filesystem::path vocabulary_folder(const std::filesystem::path& dir);

}  // namespace bev::golden
