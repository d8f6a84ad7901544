// Package page is the frame of HTML pages: one file each, that needs nothing else and
// loads nothing.
package page

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"
	"sync"
)

//go:embed frame.html
var frameSource string

//go:embed style.css
var style string

//go:embed script/scheme.js
var scheme string

var frame = template.Must(template.New("frame").Parse(frameSource))

// Template is a kind of page.
type Template struct{ body func() *template.Template }

// New returns the template of pages whose <main> element is body. A template "style" in
// it, of <style> elements, goes to the head of the page. The body is parsed when the first
// page is written, which panics if it is wrong: commands that write none do not pay for it.
func New(name, body string, funcs template.FuncMap) *Template {
	return &Template{sync.OnceValue(func() *template.Template {
		t := template.Must(template.New(name).Parse(`{{define "style"}}{{end}}`))
		return template.Must(t.Funcs(funcs).Parse(body))
	})}
}

// Write writes a page.
func (t *Template) Write(w io.Writer, title string, data any) error {
	p, err := t.Page(title, data, nil)
	if err != nil {
		return err
	}
	return p.Write(w)
}

// Page returns a page that is yet to be written. Functions in funcs replace those of
// the template.
func (t *Template) Page(title string, data any, funcs template.FuncMap) (*Page, error) {
	body, err := t.body().Clone()
	if err != nil {
		return nil, err
	}
	body.Funcs(funcs)
	var main, head strings.Builder
	if err := body.Execute(&main, data); err != nil {
		return nil, err
	}
	if err := body.ExecuteTemplate(&head, "style", nil); err != nil {
		return nil, err
	}
	return &Page{Title: title, Main: template.HTML(main.String()), Style: template.HTML(head.String())}, nil
}

// Page is a page and what it carries besides its frame.
type Page struct {
	Title string
	Main  template.HTML
	Style template.HTML // the end of its head

	// Before and After stand before and after the style of the frame, Library is a
	// script of its own, and Script the end of the frame's, all of whose names it sees.
	Before, After   template.HTML
	Library, Script template.JS
}

// Write writes the page, or nothing if there is an error.
func (p *Page) Write(w io.Writer) error {
	var whole bytes.Buffer
	err := frame.Execute(&whole, struct {
		*Page
		Sheet  template.CSS
		Scheme template.JS
	}{p, template.CSS(style), template.JS(scheme)})
	if err != nil {
		return err
	}
	_, err = whole.WriteTo(w)
	return err
}
