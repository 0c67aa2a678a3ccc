// A chart as data: panels with lines, dots and marks of several runs over one axis.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/plot/scale.h"

namespace bev {

enum class LineStyle : uint8_t { Strong, Faint };

struct Line {
  size_t run = 0;  // of Figure::runs
  LineStyle style = LineStyle::Strong;
  std::vector<double> x{}, y{};
};

// A point of its own, which says something when it is pointed at.
struct Dot {
  size_t run = 0;
  double x = 0, y = 0;
  std::string text{};
};

// Something that happened at a place of the axis.
struct Mark {
  size_t run = 0;
  double x = 0;
  std::string text{};
};

// Tall and Flat ones take a row, Small ones share one.
enum class PanelShape : uint8_t { Tall, Flat, Small };

struct Panel {
  std::string title{}, remark{};
  PanelShape shape = PanelShape::Small;
  // The values on each kind of scale; at least that of `kind`. With both, a reader may choose.
  std::optional<Range> linear{}, log{};
  ScaleKind kind = ScaleKind::Linear;
  std::vector<Line> lines{};
  std::vector<Dot> dots{};
  std::vector<Mark> marks{};  // ascending x of each run
};

// What a reader sees when pointing at a place: rows of numbers, ascending in the first.
struct ReadOut {
  std::vector<std::string> columns{};                    // the first is the axis
  std::vector<std::vector<std::vector<double>>> rows{};  // of each run
};

struct FigureRun {
  std::string name{}, remark{};
};

struct Figure {
  std::string title{}, remark{}, x_label{};
  Range x{};
  std::vector<FigureRun> runs{};
  std::vector<Panel> panels{};
  ReadOut read_out{};
  std::vector<std::string> notes{};  // what the marks say, in words of their own
};

}  // namespace bev
