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
		"ID": fmt.Sprintf("chart-%d", all.count), "Chart": c, "Text": c.Describe(), "Missing": c.Missing(), "Static": static, "Data": data,
	})
	return template.HTML(b.String()), err
}
