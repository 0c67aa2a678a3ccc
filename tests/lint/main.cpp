// bevatron-lint <check> <root>: runs one check over the files below root.
// Exit code 0: nothing found; 1: findings, or nothing to look at; 2: wrong call.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "lint/checks.h"

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

}  // namespace

int main(int argc, char** argv) try {
  for (const bev::lint::Check& check : bev::lint::all_checks()) {
    if (argc == 3 && check.name == std::string_view(argv[1])) return run(check, argv[2]);
  }
  std::fprintf(stderr, "bevatron-lint <check> <root>, where <check> is one of:\n");
  for (const bev::lint::Check& check : bev::lint::all_checks()) {
    std::fprintf(stderr, "  %s\n", std::string(check.name).c_str());
  }
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bevatron-lint: %s\n", error.what());
  return 2;
}
