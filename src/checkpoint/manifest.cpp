#include "checkpoint/manifest.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "checkpoint/checksum.h"

namespace bev {

namespace {

constexpr JsonLimits kLimits{.bytes = size_t{256} << 20, .depth = 8};
constexpr std::string_view kChecksumSuffix = ".xxh3";

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 200 &&
         name.find('/') == std::string::npos && std::none_of(name.begin(), name.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

// What stands beside a manifest of this text.
std::string checksum_line(const std::string& manifest) {
  return format("XXH3 ({}) = {}\n", kManifestName, checksum_text(checksum_of(manifest)));
}

uint64_t checksum_in(const JsonFields& fields, const char* name) {
  const std::optional<uint64_t> value = parse_checksum(fields.text(name));
  if (!value) fields.fail(name, "a checksum of 16 hexadecimal digits");
  return *value;
}

Json to_json(const HistoryEntry& entry) {
  return {{"after_iteration", entry.after_iteration},
          {"time", entry.time},
          {"program", entry.program},
          {"layout", entry.layout},
          {"changes", entry.changes}};
}

HistoryEntry parse_entry(const Json& json, const std::string& source) {
  const JsonFields fields(json, source);
  HistoryEntry entry{.after_iteration = fields.count("after_iteration"),
                     .time = fields.count("time"),
                     .program = fields.text("program"),
                     .layout = fields.text("layout"),
                     .changes = {}};
  for (const Json& change : fields.list("changes")) {
    BEV_CHECK(change.is_string(), Data, "{}: a change is not a text", source);
    entry.changes.push_back(change.get<std::string>());
  }
  return entry;
}

SampleRange parse_range(const Json& json, const std::string& source) {
  BEV_CHECK(json.is_array() && json.size() == 2 && json[0].is_number_unsigned() &&
                json[1].is_number_unsigned() && json[0] <= json[1] &&
                json[1].get<uint64_t>() <= uint64_t{1} << 62,
            Data, "{}: not a pair of rising whole numbers", source);
  return {json[0].get<int64_t>(), json[1].get<int64_t>()};
}

}  // namespace

Json to_json(const CheckpointFile& file) {
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"xxh3", checksum_text(file.checksum)},
          {"pieces", file.holds_pieces}};
}

CheckpointFile parse_checkpoint_file(const Json& json, const std::string& source) {
  const JsonFields fields(json, source);
  CheckpointFile file{.name = fields.text("name"),
                      .bytes = fields.natural("bytes"),
                      .checksum = checksum_in(fields, "xxh3"),
                      .holds_pieces = fields.flag("pieces")};
  BEV_CHECK(is_plain_name(file.name), Data, "{}: {} is not the name of a file in this folder",
            source, in_quotes(file.name));
  return file;
}

Json to_json(const Manifest& m) {
  Json json{{"format", Manifest::kFormat},
            {"iteration", m.iteration},
            {"consumed_samples", m.consumed_samples},
            {"scheduled_samples", m.scheduled_samples},
            {"data_position", m.data_position},
            {"update", m.update},
            {"seed", m.seed},
            {"config", m.config},
            {"optimizer", m.optimizer},
            {"parameters", m.parameters},
            {"permanent", m.is_permanent},
            {"time", m.time},
            {"skipped", Json::array()},
            {"history", Json::array()},
            {"files", Json::array()}};
  // JSON has no word for infinity.
  if (m.loss && std::isfinite(*m.loss)) json["loss"] = *m.loss;
  if (m.valid_loss && std::isfinite(*m.valid_loss)) json["valid_loss"] = *m.valid_loss;
  for (const SampleRange& range : m.skipped) json["skipped"].push_back({range.begin, range.end});
  for (const HistoryEntry& entry : m.history) json["history"].push_back(to_json(entry));
  for (const CheckpointFile& file : m.files) json["files"].push_back(to_json(file));
  return json;
}

Manifest parse_manifest(const Json& json, std::string_view source) {
  const JsonFields fields(json, std::string(source));
  const int64_t version = fields.count("format");
  BEV_CHECK(version == Manifest::kFormat, Data,
            "{}: the format is {}; this program reads format {}", source, version,
            Manifest::kFormat);
  Manifest m;
  m.iteration = fields.count("iteration");
  m.consumed_samples = fields.count("consumed_samples");
  m.scheduled_samples = fields.count("scheduled_samples");
  m.data_position = fields.count("data_position");
  for (const Json& range : fields.list("skipped"))
    m.skipped.push_back(parse_range(range, fields.source() + ", skipped"));
  for (const auto& [name, value] : fields.map("update").items()) {
    BEV_CHECK(value.is_number() && std::isfinite(value.get<double>()), Data,
              "{}: the value of {} is not a finite number", source, in_quotes(name));
    m.update[name] = value.get<double>();
  }
  m.seed = fields.natural("seed");
  for (const auto& [path, value] : fields.map("config").items()) {
    BEV_CHECK(value.is_string(), Data, "{}: the value of {} is not a text", source,
              in_quotes(path));
    m.config[path] = value.get<std::string>();
  }
  m.optimizer = fields.text("optimizer");
  m.parameters = fields.count("parameters");
  if (fields.states("loss")) m.loss = fields.number("loss");
  if (fields.states("valid_loss")) m.valid_loss = fields.number("valid_loss");
  m.is_permanent = fields.flag("permanent");
  m.time = fields.count("time");
  for (const Json& entry : fields.list("history"))
    m.history.push_back(parse_entry(entry, fields.source() + ", history"));
  std::set<std::string> names;
  for (const Json& entry : fields.list("files")) {
    m.files.push_back(parse_checkpoint_file(entry, fields.source() + ", files"));
    BEV_CHECK(names.insert(m.files.back().name).second, Data, "{}: {} stands twice among the files",
              source, in_quotes(m.files.back().name));
  }
  return m;
}

void write_manifest(const std::filesystem::path& folder, const Manifest& manifest) {
  const std::filesystem::path path = folder / kManifestName;
  const std::string text = to_json(manifest).dump(1) + "\n";
  // What could not be read back is not written.
  parse_manifest(parse_json(text, path.string(), kLimits), path.string());
  const auto put = [](const std::filesystem::path& to, const std::string& content) {
    AtomicFile file(to);
    file.write(content);
    file.commit();
  };
  put(path, text);
  put(path.string() + std::string(kChecksumSuffix), checksum_line(text));
}

Manifest read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestName;
  const std::filesystem::path checksum_file = path.string() + std::string(kChecksumSuffix);
  const std::string text = read_text(path, kLimits.bytes);
  const std::string stated = read_text(checksum_file, 4096);
  BEV_CHECK(stated == checksum_line(text), Data, "{} is damaged: it does not match {}",
            path.string(), checksum_file.filename().string());
  return parse_manifest(parse_json(text, path.string(), kLimits), path.string());
}

}  // namespace bev
