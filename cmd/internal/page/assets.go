package page

import (
	"embed"
	"html/template"
)

//go:embed uplot/uPlot.iife.min.js uplot/uPlot.min.css uplot/LICENSE script/*.js style.css
var files embed.FS

// assets are what pages carry: the first two all of them, the rest those with charts.
var assets = struct {
	Style   template.CSS
	Scheme  template.JS
	License template.HTML
	UPlot   template.JS
	Charts  template.JS
	Plots   template.CSS
}{
	Style:   template.CSS(read("style.css")),
	Scheme:  template.JS(read("script/scheme.js")),
	License: template.HTML("<!-- The charts are drawn by uPlot 1.6.32.\n\n" + read("uplot/LICENSE") + "\n-->"),
	UPlot:   template.JS(read("uplot/uPlot.iife.min.js")),
	Charts:  template.JS(read("script/ticks.js") + read("script/rows.js") + read("script/draw.js") + read("script/chart.js")),
	Plots:   template.CSS(read("uplot/uPlot.min.css")),
}

func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(b)
}
