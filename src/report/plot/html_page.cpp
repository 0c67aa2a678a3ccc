#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/json.h"
#include "report/plot/figure.h"
#include "report/plot/svg_text.h"

namespace bev {

namespace {

constexpr std::string_view kStyle = R"(
  :root { color-scheme: light dark; --back: #f4f5f7; --paper: #ffffff; --ink: #1c2128; --soft: #5c6470; --edge: #d9dce1 }
  @media (prefers-color-scheme: dark) {
    :root { --back: #0f1217; --paper: #181c22; --ink: #e8eaed; --soft: #a0a8b3; --edge: #343a44 }
    svg .paper { fill: #181c22 } svg text { fill: #a0a8b3 } svg .head, svg .name { fill: #e8eaed }
    svg .grid { stroke: #2a3039 } svg .axis { stroke: #6b7480 } svg .dot, svg .mark { stroke: #181c22 }
    svg .faint { stroke-opacity: .36 }
)";

constexpr std::string_view kStyleEnd = R"(
  body { margin: 0; padding: 20px; background: var(--back); color: var(--ink); font: 14px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif }
  main { max-width: 1240px; margin: auto; position: relative }
  svg { display: block; width: 100%; height: auto; border-radius: 8px; box-shadow: 0 1px 4px rgb(0 0 0 / .12) }
  .switch { color: var(--soft); margin: 0 0 10px 2px; display: inline-block }
  #log:checked ~ svg .linear, #log:not(:checked) ~ svg .log { display: none }
  .cross { stroke: var(--soft); stroke-dasharray: 3 3; pointer-events: none }
  #numbers { position: absolute; pointer-events: none; background: var(--paper); border: 1px solid var(--edge); border-radius: 6px; padding: 7px 10px; font-size: 12px; box-shadow: 0 3px 12px rgb(0 0 0 / .2); font-variant-numeric: tabular-nums }
  #numbers td, #numbers th { padding: 1px 0 1px 12px; text-align: right; font-weight: 400 }
  #numbers th { color: var(--soft) } #numbers td:first-child, #numbers th:first-child { text-align: left; padding-left: 0 }
  details { margin: 14px 2px; color: var(--soft) } summary { cursor: pointer } li { margin: 3px 0; color: var(--ink) }
)";

// The numbers under the pointer, and a line through all panels at the same place of the axis.
constexpr std::string_view kScript = R"(
(function () {
  var data = JSON.parse(document.getElementById('data').textContent);
  var main = document.querySelector('main'), svg = main.querySelector('svg'), box = document.getElementById('numbers');
  var panels = [].map.call(svg.querySelectorAll('.panel'), function (g) {
    var d = g.dataset, line = document.createElementNS('http://www.w3.org/2000/svg', 'line');
    line.setAttribute('class', 'cross'); line.style.display = 'none'; g.appendChild(line);
    return { left: +d.left, right: +d.right, top: +d.top, bottom: +d.bottom, low: +d.low, high: +d.high, line: line };
  });
  function text(v) {
    if (v === null) return '\u2013';
    var a = Math.abs(v);
    if (Number.isInteger(v) || a >= 1e3) return Math.round(v).toLocaleString('en-US');
    return a !== 0 && a < 0.01 ? v.toExponential(3) : v.toFixed(4);
  }
  function nearest(rows, x) {
    var low = 0, high = rows.length - 1;
    while (low < high) { var mid = (low + high) >> 1; if (rows[mid][0] < x) low = mid + 1; else high = mid; }
    return low > 0 && x - rows[low - 1][0] < rows[low][0] - x ? rows[low - 1] : rows[low];
  }
  function cell(row, tag, content) { var c = document.createElement(tag); c.textContent = content; row.appendChild(c); return c; }
  function hide() { box.hidden = true; panels.forEach(function (p) { p.line.style.display = 'none'; }); }
  svg.addEventListener('mouseleave', hide);
  svg.addEventListener('mousemove', function (event) {
    var frame = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / frame.width;
    var px = (event.clientX - frame.left) * scale, py = (event.clientY - frame.top) * scale;
    var panel = panels.find(function (p) { return px >= p.left && px <= p.right && py >= p.top && py <= p.bottom; });
    if (!panel) { hide(); return; }
    var x = panel.low + (panel.high - panel.low) * (px - panel.left) / (panel.right - panel.left);
    panels.forEach(function (p) {
      var at = p.left + (p.right - p.left) * (x - p.low) / (p.high - p.low);
      p.line.setAttribute('x1', at); p.line.setAttribute('x2', at);
      p.line.setAttribute('y1', p.top); p.line.setAttribute('y2', p.bottom); p.line.style.display = '';
    });
    var table = document.createElement('table'), head = table.insertRow();
    cell(head, 'th', ''); data.columns.slice(1).forEach(function (name) { cell(head, 'th', name); });
    data.rows.forEach(function (rows, run) {
      if (!rows.length) return;
      var row = table.insertRow(), name = cell(row, 'td', data.runs[run]);
      name.className = 'r' + run % data.colours;
      nearest(rows, x).slice(1).forEach(function (v) { cell(row, 'td', text(v)); });
    });
    box.replaceChildren(table); box.hidden = false;
    var place = main.getBoundingClientRect(), left = event.clientX - place.left + 16;
    if (left + box.offsetWidth > place.width) left = Math.max(0, event.clientX - place.left - box.offsetWidth - 16);
    box.style.left = left + 'px'; box.style.top = event.clientY - place.top + 16 + 'px';
  });
})();
)";

std::string colours() {
  std::string dark, names;
  for (size_t i = 0; i < kRunColours.size(); ++i) {
    dark += format(
        "    svg .s{0} {{ stroke: {1} }} svg .f{0}, #numbers .r{0} {{ fill: {1}; color: {1} }}\n",
        i, kRunColours[i].on_dark);
    names += format("  #numbers .r{} {{ color: {} }}\n", i, kRunColours[i].on_light);
  }
  return format("  {}{}{}  }}\n{}", names, kStyle, dark, kStyleEnd);
}

// Five digits are more than a reader compares; the whole numbers of the axis stay whole.
std::string digits(double value) {
  if (!std::isfinite(value)) return "null";
  return value == std::floor(value) && std::abs(value) < 1e15 ? format("{:.0f}", value)
                                                              : format("{:.5g}", value);
}

// Text in a script element: nothing in it may end the element.
std::string json_text(const Json& json) {
  std::string out;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace))
    out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

std::string data_of(const Figure& figure) {
  std::vector<std::string> names;
  names.reserve(figure.runs.size());
  for (const FigureRun& run : figure.runs) names.push_back(run.name);
  std::string rows;
  for (const auto& run : figure.read_out.rows) {
    rows += rows.empty() ? "[" : ",\n[";
    for (size_t i = 0; i < run.size(); ++i) {
      rows += i == 0 ? "[" : ",[";
      for (size_t k = 0; k < run[i].size(); ++k) rows += (k == 0 ? "" : ",") + digits(run[i][k]);
      rows += "]";
    }
    rows += "]";
  }
  return format("{{\"runs\":{},\"columns\":{},\"colours\":{},\"rows\":[{}]}}", json_text(names),
                json_text(figure.read_out.columns), kRunColours.size(), rows);
}

std::string notes_of(const Figure& figure) {
  if (figure.notes.empty()) return "";
  std::string items;
  for (const std::string& note : figure.notes) items += "<li>" + escaped(note) + "</li>\n";
  return format("<details><summary>What happened ({})</summary><ul>\n{}</ul></details>\n",
                figure.notes.size(), items);
}

}  // namespace

std::string to_html(const Figure& figure) {
  const bool has_choice = std::any_of(figure.panels.begin(), figure.panels.end(),
                                      [](const Panel& p) { return p.linear && p.log; });
  const bool is_log = std::any_of(figure.panels.begin(), figure.panels.end(), [](const Panel& p) {
    return p.linear && p.kind == ScaleKind::Log;
  });
  return format(R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{}</title>
<style>
{}</style>
</head>
<body>
<main>
{}{}<div id="numbers" hidden></div>
{}</main>
<script type="application/json" id="data">{}</script>
<script>{}</script>
</body>
</html>
)",
                escaped(figure.title), colours(),
                has_choice
                    ? format("<input type=\"checkbox\" id=\"log\"{}> <label class=\"switch\" "
                             "for=\"log\">logarithmic loss</label>\n",
                             is_log ? " checked" : "")
                    : "",
                svg_for_page(figure), notes_of(figure), data_of(figure), kScript);
}

}  // namespace bev
