// A chart as data (panels, lines, dots, marks), its scales, and its output as SVG or HTML.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace bev {

// From values to places on paper, and the round numbers that stand beside an axis.

struct Range {
  double low = 0, high = 1;

  bool operator==(const Range&) const = default;
};

enum class ScaleKind : uint8_t { Linear, Log };

class Scale {
 public:
  // `begin` and `end` are the places of the lowest and the highest value. REQUIRES: finite values,
  // low < high, and 0 < low where the scale is logarithmic.
  Scale(Range values, double begin, double end, ScaleKind kind = ScaleKind::Linear);

  // NaN for a value that has no place: one that is not finite, or not positive on a logarithmic
  // scale.
  double place(double value) const;
  Range values() const { return values_; }

 private:
  Range values_;
  double begin_, end_;
  ScaleKind kind_;
  Range mapped_;
};

struct Tick {
  double value = 0;
  std::string label{};
};

// Round numbers within the range, at most `most` of them, all labels with the same number of
// decimals where that says it best: 0.5 1.0 1.5, 20k 40k, 1e-4 2e-4. REQUIRES as for Scale;
// most >= 2.
std::vector<Tick> ticks_within(Range values, ScaleKind kind, int most);

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

// What is done to a curve before it is drawn. Values that are not finite are gaps.

// The mean of the finite values around each; the window is `width` values wide. Near the start,
// where curves are steep, it is narrower and still symmetric; at the end it has what is there. NaN
// where the value itself is not finite.
std::vector<double> smoothed(std::span<const double> values, int64_t width);

// Where nearly all values lie, wherever along the curve: what a few outliers add is left out. Empty
// (low > high) where no value is finite, or positive where only `positive` ones count.
Range typical_range(std::span<const double> values, bool positive = false);

struct Place {
  double x = 0, y = 0;
};

// The line through the places, for a drawing in which nothing finer than a column of width 1 is
// seen: at most two places of each column, its lowest and its highest, in their order. Places
// whose y is NaN are a gap, and stay one where no other is in their column. REQUIRES: finite x that
// do not descend.
std::vector<Place> thinned(std::span<const Place> places);

// A figure as SVG.

// A static file that needs nothing else.
std::string to_svg(const Figure& figure);

// The drawing inside a page: every panel that has two scales is there with both, in groups of the
// classes "linear" and "log"; panels say in data-* attributes where their axes lie.
std::string svg_for_page(const Figure& figure);

// A figure as a page for a browser.

// One HTML file that needs nothing else, light or dark as the reader prefers. Without JavaScript it
// shows the drawing, both scales and the notes; with it also the numbers under the pointer.
std::string to_html(const Figure& figure);

}  // namespace bev
