#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/format.h"
#include "report/plot/figure.h"
#include "report/plot/svg_text.h"

namespace bev {

namespace {

constexpr double kWidth = 960, kMargin = 24;
constexpr double kTallHeight = 300, kFlatHeight = 150, kSmallHeight = 130;
constexpr double kAxisRoom = 50;   // left of a panel, for the numbers of its axis
constexpr double kTitleRoom = 42;  // above a panel
constexpr double kTickRoom = 24;   // below a panel
constexpr double kLegendRow = 21;

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};

std::string style() {
  std::string text = R"(
    text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; font-size: 11px; fill: #5c6470 }
    .paper { fill: #ffffff }
    .head { font-size: 17px; font-weight: 600; fill: #1c2128 }
    .name { font-size: 12.5px; font-weight: 600; fill: #1c2128 }
    .tick { font-variant-numeric: tabular-nums }
    .end { text-anchor: end }
    .mid { text-anchor: middle }
    .grid { stroke: #e7e9ed; stroke-width: 1 }
    .axis { stroke: #9aa2ad; stroke-width: 1 }
    .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round }
    .faint { stroke-width: 1; stroke-opacity: .28 }
    .dot { stroke: #ffffff; stroke-width: 1.4 }
    .mark { stroke: #ffffff; stroke-width: .8 }
)";
  for (size_t i = 0; i < kRunColours.size(); ++i)
    text += format("    .s{0} {{ stroke: {1} }}\n    .f{0} {{ fill: {1} }}\n", i,
                   kRunColours[i].on_light);
  return text;
}

class Drawing {
 public:
  Drawing(const Figure& figure, bool both_scales) : figure_(figure), both_scales_(both_scales) {}

  std::string text() {
    head();
    panels();
    const std::string height = coordinate(y_ + kMargin - 4);
    return format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" role=\"img\" aria-label=\"{2}\">\n<style>{3}</style>\n"
        "<rect class=\"paper\" width=\"{0}\" height=\"{1}\" rx=\"8\"/>\n{4}</svg>\n",
        coordinate(kWidth), height, escaped(figure_.title), style(), body_);
  }

 private:
  void head() {
    y_ = kMargin + 14;
    label(kMargin, y_, "head", shortened(figure_.title, 80));
    if (!figure_.remark.empty()) label(kWidth - kMargin, y_, "end", shortened(figure_.remark, 60));
    y_ += 10;
    // The title of a single run is its name.
    const bool has_names = figure_.runs.size() > 1;
    size_t longest = 0;
    for (const FigureRun& run : figure_.runs)
      longest = has_names ? std::max(longest, std::min<size_t>(run.name.size(), 48)) : 0;
    for (size_t run = 0; run < figure_.runs.size(); ++run) {
      y_ += kLegendRow;
      body_ += format("<path class=\"line {}\"{} d=\"M{},{}h20\"/>\n", stroke_class(run),
                      dashes(run), coordinate(kMargin + 1), coordinate(y_ - 4));
      if (has_names) label(kMargin + 30, y_, "name", shortened(figure_.runs[run].name, 48));
      label(kMargin + 30 + (has_names ? 12 + 8.6 * static_cast<double>(longest) : 0), y_, "",
            figure_.runs[run].remark);
    }
  }

  void panels() {
    y_ += 4;
    for (size_t i = 0; i < figure_.panels.size();) {
      const PanelShape shape = figure_.panels[i].shape;
      const bool is_small = shape == PanelShape::Small;
      size_t end = i + 1;
      while (is_small && end < figure_.panels.size() && end < i + 3 &&
             figure_.panels[end].shape == PanelShape::Small)
        ++end;
      const double height = is_small                    ? kSmallHeight
                            : shape == PanelShape::Flat ? kFlatHeight
                                                        : kTallHeight;
      const double top = y_ + kTitleRoom;
      const auto count = static_cast<double>(end - i);
      const double width = (kWidth - 2 * kMargin - (count - 1) * 14) / count;
      double left = kMargin;
      for (; i < end; ++i) {
        panel(figure_.panels[i], {.left = left + kAxisRoom - 8,
                                  .top = top,
                                  .right = left + width,
                                  .bottom = top + height});
        left += width + 14;
      }
      y_ = top + height + kTickRoom + 10;
      label(kWidth / 2, y_, "mid", figure_.x_label);
    }
  }

  void panel(const Panel& panel, const Box& box) {
    label(box.left - kAxisRoom + 8, box.top - 12, "name", panel.title);
    if (!panel.remark.empty())
      label(box.left - kAxisRoom + 16 + 7.8 * static_cast<double>(panel.title.size()), box.top - 12,
            "", panel.remark);
    body_ += format(
        "<g class=\"panel\" data-left=\"{}\" data-top=\"{}\" data-right=\"{}\" data-bottom=\"{}\" "
        "data-low=\"{}\" data-high=\"{}\">\n",
        coordinate(box.left), coordinate(box.top), coordinate(box.right), coordinate(box.bottom),
        figure_.x.low, figure_.x.high);
    body_ += format(
        "<clipPath id=\"clip{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n",
        clips_, coordinate(box.left), coordinate(box.top - 3), coordinate(box.right - box.left + 2),
        coordinate(box.bottom - box.top + 3));
    const Scale x(figure_.x, box.left, box.right);
    x_axis(x, box, panel.shape == PanelShape::Small ? 5 : 9);
    const bool shows_both = both_scales_ && panel.linear && panel.log;
    for (const ScaleKind kind : {ScaleKind::Linear, ScaleKind::Log}) {
      if (kind != panel.kind && !shows_both) continue;
      const bool is_log = kind == ScaleKind::Log;
      if (shows_both) body_ += format("<g class=\"{}\">\n", is_log ? "log" : "linear");
      const Scale y(is_log ? *panel.log : *panel.linear, box.bottom, box.top, kind);
      y_axis(y, kind, box, panel.shape == PanelShape::Tall ? 8 : 5);
      contents(panel, x, y, box);
      if (shows_both) body_ += "</g>\n";
    }
    marks(panel, x, box);
    body_ += "</g>\n";
    ++clips_;
  }

  void x_axis(const Scale& x, const Box& box, int most) {
    body_ += format("<path class=\"axis\" d=\"M{},{}H{}\"/>\n", coordinate(box.left),
                    coordinate(box.bottom), coordinate(box.right));
    for (const Tick& tick : ticks_within(x.values(), ScaleKind::Linear, most)) {
      const double at = x.place(tick.value);
      body_ +=
          format("<path class=\"axis\" d=\"M{},{}v4\"/>\n", coordinate(at), coordinate(box.bottom));
      label(at, box.bottom + 17, "tick mid", tick.label);
    }
  }

  void y_axis(const Scale& y, ScaleKind kind, const Box& box, int most) {
    for (const Tick& tick : ticks_within(y.values(), kind, most)) {
      const double at = y.place(tick.value);
      body_ += format("<path class=\"grid\" d=\"M{},{}H{}\"/>\n", coordinate(box.left),
                      coordinate(at), coordinate(box.right));
      label(box.left - 7, at + 4, "tick end", tick.label);
    }
  }

  void contents(const Panel& panel, const Scale& x, const Scale& y, const Box& box) {
    body_ += format("<g clip-path=\"url(#clip{})\">\n", clips_);
    for (const LineStyle style : {LineStyle::Faint, LineStyle::Strong})
      for (const Line& line : panel.lines)
        if (line.style == style) curve(line, x, y, box);
    body_ += "</g>\n";
    for (const Dot& dot : panel.dots) {
      const double at_x = x.place(dot.x), at_y = y.place(dot.y);
      if (!(at_x >= box.left - 0.5 && at_x <= box.right + 0.5 && at_y >= box.top - 3 &&
            at_y <= box.bottom))
        continue;
      body_ += format(
          "<circle class=\"dot f{}\" cx=\"{}\" cy=\"{}\" r=\"4\"><title>{}</title></circle>\n",
          colour(dot.run), coordinate(at_x), coordinate(at_y), escaped(dot.text));
    }
  }

  // Far outside of the panel nothing is seen, and no viewer is troubled by huge numbers.
  static double inside(double y, const Box& box) {
    return std::clamp(y, box.top - 400, box.bottom + 400);
  }

  void curve(const Line& line, const Scale& x, const Scale& y, const Box& box) {
    std::vector<Place> places;
    places.reserve(line.x.size());
    for (size_t i = 0; i < line.x.size(); ++i)
      places.push_back({x.place(line.x[i]), y.place(line.y[i])});
    std::string path;
    bool is_begun = false;
    for (const Place& place : thinned(places)) {
      if (std::isnan(place.y)) {
        is_begun = false;
        continue;
      }
      path += format("{}{},{}", is_begun ? 'L' : 'M', coordinate(place.x),
                     coordinate(inside(place.y, box)));
      // A point between two gaps is seen as a dot: its ends are round.
      if (!is_begun) path += "h0";
      is_begun = true;
    }
    if (path.empty()) return;
    body_ += format("<path class=\"line {}{}\"{} d=\"{}\"/>\n",
                    line.style == LineStyle::Faint ? "faint " : "", stroke_class(line.run),
                    line.style == LineStyle::Faint ? "" : dashes(line.run), path);
  }

  // Those that would cover each other become one, which says how many it stands for.
  void marks(const Panel& panel, const Scale& x, const Box& box) {
    const std::span<const Mark> all(panel.marks);
    for (size_t i = 0; i < all.size();) {
      const double at = x.place(all[i].x);
      std::string text = all[i].text;
      size_t end = i + 1;
      while (end < all.size() && all[end].run == all[i].run && x.place(all[end].x) < at + 5) {
        if (end - i < 5) text += "\n" + all[end].text;
        ++end;
      }
      if (end - i > 5)
        text += format("\n... {} in all here", with_commas(static_cast<int64_t>(end - i)));
      if (at >= box.left - 0.5 && at <= box.right + 0.5)
        body_ +=
            format("<path class=\"mark f{}\" d=\"M{},{}l5,9h-10z\"><title>{}</title></path>\n",
                   colour(all[i].run), coordinate(at), coordinate(box.bottom - 9), escaped(text));
      i = end;
    }
  }

  void label(double x, double y, std::string_view classes, std::string_view text) {
    body_ += format("<text{} x=\"{}\" y=\"{}\">{}</text>\n",
                    classes.empty() ? "" : format(" class=\"{}\"", classes), coordinate(x),
                    coordinate(y), escaped(text));
  }

  static size_t colour(size_t run) { return run % kRunColours.size(); }
  static std::string stroke_class(size_t run) { return format("s{}", colour(run)); }
  static std::string dashes(size_t run) {
    const std::string_view pattern = kRunDashes[run / kRunColours.size() % kRunDashes.size()];
    return pattern.empty() ? "" : format(" stroke-dasharray=\"{}\"", pattern);
  }

  const Figure& figure_;
  bool both_scales_;
  std::string body_;
  double y_ = 0;
  int clips_ = 0;
};

}  // namespace

std::string to_svg(const Figure& figure) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + Drawing(figure, false).text();
}

std::string svg_for_page(const Figure& figure) { return Drawing(figure, true).text(); }

}  // namespace bev
