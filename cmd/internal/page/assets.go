package page

import (
	"embed"
	"html/template"
)

//go:embed uplot/uPlot.iife.min.js uplot/uPlot.min.css uplot/LICENSE script/*.js
var files embed.FS

// assets are what pages with charts carry.
var assets = struct {
	Before, After template.HTML
	UPlot, Charts template.JS
}{
	Before: template.HTML("<!-- The charts are drawn by uPlot 1.6.32.\n\n" + read("uplot/LICENSE") + "\n-->\n<style>" + read("uplot/uPlot.min.css") + "</style>\n"),
	After:  "<noscript><style>figure.chart .above, figure.chart .axis-x, figure.chart .plot { display: none }</style></noscript>\n",
	UPlot:  template.JS(read("uplot/uPlot.iife.min.js")),
	Charts: template.JS(read("script/ticks.js") + read("script/rows.js") + read("script/draw.js") + read("script/chart.js")),
}

func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(b)
}
