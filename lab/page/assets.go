//go:build !js

package page

import (
	"embed"

	"github.com/octavo-fp8/octavo/internal/page"
)

//go:embed uplot/uPlot.iife.min.js uplot/uPlot.min.css uplot/LICENSE script/*.js
var files embed.FS

// assets are what pages with charts carry.
var assets = struct {
	Before, After, UPlot, Charts page.HTML
}{
	Before: page.HTML("<!-- The charts are drawn by uPlot 1.6.32.\n\n" + read("uplot/LICENSE") + "\n-->\n<style>" + read("uplot/uPlot.min.css") + "</style>\n"),
	After:  "<noscript><style>figure.chart .above, figure.chart .axis-x, figure.chart .plot, figure.heat > .scale, figure.heat > .cell { display: none } .multiples { grid-template-columns: minmax(0, 1fr) }</style></noscript>\n",
	UPlot:  page.HTML(read("uplot/uPlot.iife.min.js")),
	Charts: page.HTML(read("script/ticks.js") + read("script/rows.js") + read("script/draw.js") + read("script/chart.js") + read("script/heat.js")),
}

func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(b)
}
