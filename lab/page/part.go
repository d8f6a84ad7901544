//go:build js

package page

import (
	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/chart"
)

// picture is none where scripts run. Its fonts are a half of what a page of charts takes.
func picture(chart.Chart) (page.HTML, error) { return "", nil }
