package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
)

//go:embed figure.html
var figureSource string

var figureTemplate = template.Must(template.New("figure").Parse(figureSource))

// tableRows is how many a chart's table has at most.
const tableRows = 200

// label returns what a chart is called.
func label(c chart.Chart) string {
	if c.Title == "" {
		return "Chart"
	}
	return "Chart: " + c.Title
}

// figure returns the element of a chart.
func (all *charts) figure(c chart.Chart) (template.HTML, error) {
	all.count++
	c = all.colors.Assign(c)
	static, err := c.SVG()
	if err != nil {
		return "", err
	}
	data, err := c.JSON()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = figureTemplate.Execute(&b, map[string]any{
		"ID": fmt.Sprintf("chart-%d", all.count), "Chart": c, "Label": label(c), "Text": c.Describe(), "Missing": c.Missing(),
		"Static": static, "Data": data, "Table": c.Table(tableRows),
	})
	return template.HTML(b.String()), err
}
