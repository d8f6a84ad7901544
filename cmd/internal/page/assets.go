package page

import (
	"embed"
	"html/template"
)

//go:embed uplot/uPlot.iife.min.js uplot/uPlot.min.css uplot/LICENSE charts.js scheme.js
var files embed.FS

// assets are what pages with charts carry.
var assets = struct {
	License               template.HTML
	UPlot, Charts, Scheme template.JS
	UPlotStyle            template.CSS
}{
	template.HTML("<!-- uPlot 1.6.32, which draws the charts:\n\n" + read("uplot/LICENSE") + "\n-->"),
	template.JS(read("uplot/uPlot.iife.min.js")), template.JS(read("charts.js")), template.JS(read("scheme.js")),
	template.CSS(read("uplot/uPlot.min.css")),
}

func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(b)
}
