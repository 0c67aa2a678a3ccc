#include "checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/file.h"
#include "checkpoint/checksum.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using test::expect_error;
using test::TemporaryDirectory;

Manifest full_manifest() {
  Manifest m;
  m.iteration = 1200;
  m.consumed_samples = int64_t{1} << 61;
  m.scheduled_samples = 9000;
  m.data_position = 9600;
  m.skipped = {{100, 200}, {5000, 5000}};
  m.update = {{"loss_scale", 65536.0}, {"good_steps", 17.0}, {"tiny", 1e-300}};
  m.seed = ~uint64_t{0};
  m.config = {{"model.width", "128"}, {"data.path", "[\"a \\\"b\\\"\"]"}};
  m.optimizer = "adamw";
  m.parameters = 12345;
  m.loss = 0.1;
  m.valid_loss = 1.0 / 3;
  m.is_permanent = true;
  m.time = 1'700'000'000;
  m.history = {{.after_iteration = 0,
                .time = 1,
                .program = "bevatron 1",
                .layout = "tp2.dp2",
                .changes = {}},
               {.after_iteration = 1000,
                .time = 2,
                .program = "bevatron 2",
                .layout = "dp4",
                .changes = {"optim.lr 1e-3 -> 1e-4", "\n\"\xc3\xbc"}}};
  m.files = {{.name = "config.toml", .bytes = 0, .checksum = 0, .holds_pieces = false},
             {.name = "weights-00000-of-00001.safetensors",
              .bytes = ~uint64_t{0},
              .checksum = ~uint64_t{0},
              .holds_pieces = true}};
  return m;
}

Json as_read(const Manifest& manifest) {
  return parse_json(to_json(manifest).dump(), "manifest.json");
}

TEST(Manifest, ComesBackAsItWas) {
  for (const Manifest& m : {full_manifest(), Manifest{}}) {
    EXPECT_EQ(parse_manifest(as_read(m), "manifest.json"), m);
    const TemporaryDirectory folder;
    write_manifest(folder.path(), m);
    EXPECT_EQ(read_manifest(folder.path()), m);
  }
}

// A run whose loss is not finite is saved like any other.
TEST(Manifest, LeavesOutLossesThatAreNotFinite) {
  Manifest m = full_manifest();
  m.loss = std::nan("");
  m.valid_loss = std::numeric_limits<double>::infinity();
  const TemporaryDirectory folder;
  write_manifest(folder.path(), m);
  const Manifest back = read_manifest(folder.path());
  EXPECT_FALSE(back.loss);
  EXPECT_FALSE(back.valid_loss);
}

TEST(Manifest, WritesNothingThatCannotBeRead) {
  Manifest infinite = full_manifest();
  infinite.update["loss_scale"] = std::numeric_limits<double>::infinity();
  Manifest negative = full_manifest();
  negative.iteration = -1;
  for (const Manifest& m : {infinite, negative}) {
    const TemporaryDirectory folder;
    expect_error(ErrorKind::Data, "manifest.json", [&] { write_manifest(folder.path(), m); });
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

struct Fault {
  std::string message;
  std::function<void(Json&)> plant;
};

TEST(Manifest, RefusesWhatIsWrong) {
  const std::vector<Fault> faults{
      {"is not a JSON object", [](Json& j) { j = Json::array(); }},
      {"format is missing", [](Json& j) { j.erase("format"); }},
      {"the format is 2; this program reads format 1", [](Json& j) { j["format"] = 2u; }},
      {"format = 1.0 is not a whole number", [](Json& j) { j["format"] = 1.0; }},
      {"iteration = -1 is not a whole number", [](Json& j) { j["iteration"] = -1; }},
      {"iteration = 4611686018427387905 is not a whole number",
       [](Json& j) { j["iteration"] = (uint64_t{1} << 62) + 1; }},
      {"consumed_samples = \"1\"", [](Json& j) { j["consumed_samples"] = "1"; }},
      {"scheduled_samples is missing", [](Json& j) { j.erase("scheduled_samples"); }},
      {"data_position is missing", [](Json& j) { j["data_position"] = nullptr; }},
      {"skipped = 3 is not a list", [](Json& j) { j["skipped"] = 3u; }},
      {"skipped: not a pair of rising", [](Json& j) { j["skipped"] = {{2u, 1u}}; }},
      {"skipped: not a pair of rising", [](Json& j) { j["skipped"] = {{1u, 2u, 3u}}; }},
      {"skipped: not a pair of rising", [](Json& j) { j["skipped"] = {{-1, 2}}; }},
      {"skipped: not a pair of rising",
       [](Json& j) { j["skipped"] = {{0u, (uint64_t{1} << 62) + 1}}; }},
      {"update = {...} is not an object", [](Json& j) { j["update"] = Json::array(); }},
      {"the value of \"loss_scale\" is not a finite number",
       [](Json& j) { j["update"]["loss_scale"] = "x"; }},
      {"seed = -3 is not a whole number of 0 or more", [](Json& j) { j["seed"] = -3; }},
      {"config = \"x\" is not an object", [](Json& j) { j["config"] = "x"; }},
      {"the value of \"model.width\" is not a text",
       [](Json& j) { j["config"]["model.width"] = 3; }},
      {"optimizer = 3 is not a string", [](Json& j) { j["optimizer"] = 3; }},
      {"parameters = 0.5", [](Json& j) { j["parameters"] = 0.5; }},
      {"loss is missing", [](Json& j) { j["loss"] = nullptr; }},
      {"valid_loss = \"low\" is not a finite number", [](Json& j) { j["valid_loss"] = "low"; }},
      {"permanent = 1 is not true or false", [](Json& j) { j["permanent"] = 1; }},
      {"time = -5", [](Json& j) { j["time"] = -5; }},
      {"history = {...} is not a list", [](Json& j) { j["history"] = Json::object(); }},
      {"history is not a JSON object", [](Json& j) { j["history"][0] = 1; }},
      {"history: layout is missing", [](Json& j) { j["history"][0].erase("layout"); }},
      {"history: program = 1 is not a string", [](Json& j) { j["history"][0]["program"] = 1; }},
      {"history: after_iteration = -1", [](Json& j) { j["history"][1]["after_iteration"] = -1; }},
      {"history: changes = \"x\" is not a list", [](Json& j) { j["history"][1]["changes"] = "x"; }},
      {"history: a change is not a text", [](Json& j) { j["history"][1]["changes"][0] = 1; }},
      {"files = {...} is not a list", [](Json& j) { j["files"] = Json::object(); }},
      {"files is not a JSON object", [](Json& j) { j["files"][0] = "a"; }},
      {"files: name is missing", [](Json& j) { j["files"][0].erase("name"); }},
      {"files: bytes = -1 is not a whole number", [](Json& j) { j["files"][0]["bytes"] = -1; }},
      {"xxh3 = \"12\" is not a checksum", [](Json& j) { j["files"][0]["xxh3"] = "12"; }},
      {"files: pieces = 0 is not true or false", [](Json& j) { j["files"][0]["pieces"] = 0; }},
      {"\"config.toml\" stands twice", [](Json& j) { j["files"][1]["name"] = "config.toml"; }},
  };
  for (const Fault& fault : faults) {
    Json json = as_read(full_manifest());
    fault.plant(json);
    const std::string message = expect_error(ErrorKind::Data, fault.message,
                                             [&] { parse_manifest(json, "run/manifest.json"); });
    EXPECT_TRUE(message.starts_with("run/manifest.json")) << message;
  }
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../weights"),
        std::string("/etc/passwd"), std::string("a\0b", 3), std::string(201, 'a')}) {
    Json json = as_read(full_manifest());
    json["files"][0]["name"] = name;
    expect_error(ErrorKind::Data, "is not the name of a file in this folder",
                 [&] { parse_manifest(json, "manifest.json"); });
  }
}

TEST(Manifest, NeedsItsChecksum) {
  const TemporaryDirectory folder;
  write_manifest(folder.path(), full_manifest());
  const std::string text = read_text(folder / "manifest.json");
  EXPECT_EQ(read_text(folder / "manifest.json.xxh3"),
            "XXH3 (manifest.json) = " + checksum_text(checksum_of(text)) + "\n");
  std::filesystem::remove(folder / "manifest.json.xxh3");
  expect_error(ErrorKind::Data, "manifest.json.xxh3", [&] { read_manifest(folder.path()); });
  std::filesystem::remove(folder / "manifest.json");
  expect_error(ErrorKind::Data, "manifest.json", [&] { read_manifest(folder.path()); });
}

}  // namespace
}  // namespace bev
