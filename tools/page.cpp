// SPDX-License-Identifier: BSD-2-Clause
#include "tools/page.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "tools/page_data.hpp"
#include "tools/text.hpp"

// tools/page/assets.S.in
extern "C" {
extern const char spinkick_page_html[], spinkick_page_html_end[];
extern const char spinkick_page_css[], spinkick_page_css_end[];
extern const char spinkick_page_js[], spinkick_page_js_end[];
extern const char spinkick_chart_library[], spinkick_chart_library_end[];
}

namespace spinkick::report {
namespace {

std::string_view asset(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

} // namespace

std::string json_for_script(const Json& json) {
    std::string out;
    for (const char c : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
        if (c == '<')
            out += "\\u003c";
        else
            out += c;
    }
    return out;
}

std::string page(const Results& results) {
    const std::string_view library = asset(spinkick_chart_library, spinkick_chart_library_end);
    if (library.empty())
        throw InputError(
            "html: built without Chart.js, which draws the page: apt-get install libjs-chart.js, and build "
            "again");
    if (library.find("</script") != std::string_view::npos || library.find("<!--") != std::string_view::npos)
        throw InputError("html: the Chart.js that this program was built with cannot stand inside a page");
    const std::string data = json_for_script(page_data(results));
    const std::array<std::pair<std::string_view, std::string_view>, 4> parts{
        {{"{{style}}", asset(spinkick_page_css, spinkick_page_css_end)},
         {"{{library}}", library},
         {"{{data}}", data},
         {"{{script}}", asset(spinkick_page_js, spinkick_page_js_end)}}};
    std::string_view rest = asset(spinkick_page_html, spinkick_page_html_end);
    std::string out;
    for (const auto& [mark, content] : parts) { // in the order of the template
        const std::size_t at = rest.find(mark);
        out += rest.substr(0, at);
        out += content;
        rest.remove_prefix(at + mark.size());
    }
    out += rest;
    return out;
}

} // namespace spinkick::report
