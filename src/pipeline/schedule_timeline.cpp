#include "pipeline/schedule_timeline.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace bev {

namespace {

// The shortest computation: one cell of a text row. Others are rounded to whole cells.
double cell_time(const SimulatedSchedule& simulation) {
  double shortest = 0;
  for (const std::vector<TimedInstr>& rank : simulation.ranks) {
    for (const TimedInstr& timed : rank) {
      const double time = timed.end - timed.begin;
      if (time > 0 && (shortest == 0 || time < shortest)) shortest = time;
    }
  }
  return shortest > 0 ? shortest : 1;
}

bool computes(const SimulatedSchedule& simulation, Act act) {
  for (const std::vector<TimedInstr>& rank : simulation.ranks) {
    for (const TimedInstr& timed : rank) {
      if (timed.instr.act == act) return true;
    }
  }
  return false;
}

std::string summary(std::span<const Program> programs, const SimulatedSchedule& simulation) {
  std::string slots;
  for (const Program& program : programs) slots += format(" {}", slots_of(program));
  return format("bubble {:.4g} %, slots{}", 100 * simulation.bubble(), slots);
}

// Micro-batch, chunk if there are several, act: 3 3B 3w, or 3a 3A 3aw.
std::string cell_text(const Instr& instr, bool chunks) {
  const bool weight = instr.act == Act::BackwardWeight;
  const bool backward = !weight && instr.act != Act::Forward;
  std::string text = format("{}", instr.micro);
  if (chunks) text += static_cast<char>((backward ? 'A' : 'a') + instr.chunk % 26);
  if (backward && !chunks) text += 'B';
  if (weight) text += 'w';
  return text;
}

class TextRows {
 public:
  TextRows(const SimulatedSchedule& simulation, bool chunks, int columns)
      : chunks_(chunks), unit_(cell_time(simulation)), cells_(cell_at(simulation.end)) {
    for (const std::vector<TimedInstr>& rank : simulation.ranks) {
      for (const TimedInstr& timed : rank) {
        width_ = std::max(width_, cell_text(timed.instr, chunks).size());
      }
    }
    label_ = format("rank {} ", simulation.ranks.size() - 1).size();
    const size_t free = std::max(static_cast<size_t>(std::max(columns, 0)), label_) - label_;
    const size_t fitting = std::max<size_t>(free / width_, 3);
    if (cells_ <= fitting) return;
    tail_ = (fitting - 1) / 2;
    head_ = fitting - 1 - tail_;
  }

  std::string row(size_t rank, const std::vector<TimedInstr>& computations) const {
    std::string cells(cells_ * width_, ' ');
    for (size_t cell = 0; cell < cells_; ++cell) cells[cell * width_] = '.';
    for (const TimedInstr& timed : computations) {
      const size_t begin = cell_at(timed.begin), end = cell_at(timed.end);
      if (begin == end) continue;
      std::string text = cell_text(timed.instr, chunks_);
      text.resize(width_, end - begin > 1 ? '=' : ' ');
      text.resize((end - begin) * width_, '=');
      cells.replace(begin * width_, text.size(), text);
    }
    if (head_ > 0) {
      cells = cells.substr(0, head_ * width_) + format("{:<{}}", '~', width_) +
              cells.substr((cells_ - tail_) * width_);
    }
    const std::string line = format("{:<{}}{}", format("rank {}", rank), label_, cells);
    return line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }

  std::string note() const {
    if (head_ == 0) return {};
    return format("~ {} of {} cells are left out\n", cells_ - head_ - tail_, cells_);
  }

  double unit() const { return unit_; }

 private:
  size_t cell_at(double time) const { return static_cast<size_t>(std::llround(time / unit_)); }

  bool chunks_;
  double unit_;
  size_t cells_;
  size_t width_ = 1, label_ = 0;
  size_t head_ = 0, tail_ = 0;  // cells before and after the omitted ones
};

std::string text_legend(const SimulatedSchedule& simulation, bool chunks, double unit) {
  std::string text = chunks ? "3a 3b forward of chunks 0 and 1" : "3 forward";
  const bool split = computes(simulation, Act::BackwardInput);
  if (split || computes(simulation, Act::Backward))
    text += chunks ? ", 3A 3B backward" : ", 3B backward";
  if (split) text += chunks ? " of inputs, 3aw 3bw of weights" : " of inputs, 3w of weights";
  return text + format(", = continued, . idle; a cell is {:.4g}\n", unit);
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

// A colour per act, lighter from chunk to chunk.
std::string colour_of(Act act, int chunk, int chunks) {
  struct Rgb {
    double red, green, blue;
  };
  const Rgb full = act == Act::Forward          ? Rgb{74, 134, 232}
                   : act == Act::BackwardWeight ? Rgb{236, 155, 59}
                                                : Rgb{72, 166, 108};
  const double white = 0.6 * chunk / chunks;
  const auto mixed = [&](double c) { return static_cast<int>(c + (255 - c) * white); };
  return format("#{:02x}{:02x}{:02x}", mixed(full.red), mixed(full.green), mixed(full.blue));
}

std::string_view words_for(Act act) {
  switch (act) {
    case Act::Forward: return "forward";
    case Act::Backward: return "backward";
    case Act::BackwardInput: return "backward, inputs";
    default: return "backward, weights";
  }
}

class Svg {
 public:
  Svg(const SimulatedSchedule& simulation, const PipelineShape& shape)
      : simulation_(simulation),
        shape_(shape),
        scale_(std::min(26 / cell_time(simulation), kWidest / std::max(simulation.end, 1e-9))) {}

  std::string text(std::string_view title, std::string_view summary) {
    const double width = kLeft + std::max(scale_ * simulation_.end, 560.0) + 10;
    const double height = kTop + kRow * static_cast<double>(simulation_.ranks.size() + 1) + 14;
    out_ = format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        width, height);
    write(kLeft, 20, format("{}{}{}", title, title.empty() ? "" : ": ", summary));
    for (size_t rank = 0; rank < simulation_.ranks.size(); ++rank) row(rank);
    legend();
    return std::move(out_) + "</svg>\n";
  }

 private:
  static constexpr double kWidest = 12000, kLeft = 64, kTop = 34, kRow = 26, kBox = 22;

  void write(double x, double y, std::string_view text) {
    out_ += format("<text x=\"{:.2f}\" y=\"{:.2f}\">{}</text>\n", x, y, xml_escaped(text));
  }

  void box(double x, double y, double width, std::string_view colour, std::string_view inside,
           std::string_view hint) {
    out_ += format(
        "<g><title>{}</title><rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{}\" "
        "fill=\"{}\" stroke=\"#ffffff\"/>",
        xml_escaped(hint), x, y, width, kBox, colour);
    if (width >= 8 * static_cast<double>(inside.size())) {
      out_ += format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\">{}</text>",
                     x + width / 2, y + 15, xml_escaped(inside));
    }
    out_ += "</g>\n";
  }

  void row(size_t rank) {
    const double y = kTop + kRow * static_cast<double>(rank);
    write(8, y + 15, format("rank {}", rank));
    out_ +=
        format("<rect x=\"{}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{}\" fill=\"#eeeeee\"/>\n",
               kLeft, y, scale_ * simulation_.end, kBox);
    for (const auto& [instr, begin, end] : simulation_.ranks[rank]) {
      box(kLeft + scale_ * begin, y, scale_ * (end - begin),
          colour_of(instr.act, instr.chunk, shape_.chunks), format("{}", instr.micro),
          format("{} of micro-batch {}, chunk {}, slot {}: {:.4g} to {:.4g}", words_for(instr.act),
                 instr.micro, instr.chunk, instr.slot, begin, end));
    }
  }

  void legend() {
    const double y = kTop + kRow * static_cast<double>(simulation_.ranks.size()) + 8;
    double x = kLeft;
    for (const Act act : {Act::Forward, Act::Backward, Act::BackwardInput, Act::BackwardWeight}) {
      if (!computes(simulation_, act)) continue;
      for (int chunk = 0; chunk < shape_.chunks; ++chunk) {
        box(x, y, kBox, colour_of(act, chunk, shape_.chunks),
            shape_.chunks > 1 ? format("{}", chunk) : "", format("chunk {}", chunk));
        x += kBox + 2;
      }
      write(x + 4, y + 15, words_for(act));
      x += 130;
    }
    if (shape_.chunks > 1) write(x, y + 15, "(by chunk)");
  }

  const SimulatedSchedule& simulation_;
  PipelineShape shape_;
  double scale_;  // pixels per time
  std::string out_;
};

}  // namespace

std::string render_text(std::span<const Program> programs, const PipelineShape& shape,
                        std::span<const StageCosts> stages, int columns) {
  const SimulatedSchedule simulation = simulate(programs, shape, stages);
  const bool chunks = shape.chunks > 1;
  const TextRows rows(simulation, chunks, columns);
  std::string text;
  for (size_t rank = 0; rank < simulation.ranks.size(); ++rank) {
    text += rows.row(rank, simulation.ranks[rank]);
  }
  text += rows.note();
  text += text_legend(simulation, chunks, rows.unit());
  return text + summary(programs, simulation) + '\n';
}

std::string render_svg(std::span<const Program> programs, const PipelineShape& shape,
                       std::span<const StageCosts> stages, std::string_view title) {
  const SimulatedSchedule simulation = simulate(programs, shape, stages);
  return Svg(simulation, shape).text(title, summary(programs, simulation));
}

}  // namespace bev
