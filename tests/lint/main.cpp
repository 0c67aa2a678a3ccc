// bevatron-lint CHECK ROOT          runs one check over the files below ROOT
// bevatron-lint plant ROOT NAME     plants a fault of tests/mutants/list.txt, prints the changed
// file bevatron-lint definitions FILE    lists the names that a fault may use for the code of FILE
// Exit code 0: success; 1: findings, or no file to check; 2: usage error, or a file problem.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "lint/checks.h"
#include "lint/definitions.h"
#include "lint/mutant_list.h"
#include "lint/source_text.h"

namespace {

int run(const bev::lint::Check& check, const char* root) {
  const bev::lint::Report report = check.run(root);
  for (const bev::lint::Finding& finding : report.findings) {
    std::printf("%s:%d: %s\n", finding.path.c_str(), finding.line, finding.what.c_str());
  }
  if (!report.findings.empty()) {
    std::printf("%s (%zu findings)\n", std::string(check.rule).c_str(), report.findings.size());
    return 1;
  }
  std::printf("%d files, nothing found\n", report.files);
  if (report.files == 0) std::printf("no file to look at below %s\n", root);
  return report.files > 0 ? 0 : 1;
}

void list_definitions(const char* file) {
  for (const bev::lint::Definition& each : bev::lint::definitions(bev::lint::read_file(file)))
    std::printf("%zu %zu %s\n", each.begin, each.end, each.name.c_str());
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (argc == 4 && verb == "plant") {
    std::printf("%s\n", bev::lint::plant_fault(argv[2], argv[3]).c_str());
    return 0;
  }
  if (argc == 3 && verb == "definitions") {
    list_definitions(argv[2]);
    return 0;
  }
  for (const bev::lint::Check& check : bev::lint::all_checks()) {
    if (argc == 3 && check.name == verb) return run(check, argv[2]);
  }
  std::fprintf(stderr,
               "usage: bevatron-lint CHECK ROOT\n"
               "       bevatron-lint plant ROOT NAME\n"
               "       bevatron-lint definitions FILE\n"
               "checks:\n");
  for (const bev::lint::Check& check : bev::lint::all_checks()) {
    std::fprintf(stderr, "  %s\n", std::string(check.name).c_str());
  }
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bevatron-lint: %s\n", error.what());
  return 2;
}
