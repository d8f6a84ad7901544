//go:build !js

// Package wasm lets pages of commands call the library: they carry it as a program of
// WebAssembly, so that what they compute has its bits. Its source is in the folder octavo, and
// scripts/wasm builds it: go install must find it built.
//
// Of its 7.6 MB, 3.3 are Go's runtime, fmt and encoding/json, which whatever reads safetensors
// files has. Compressed it is 2.0 MB, in a page 2.7 MB.
//
// What the program is made of cannot import this package, or it would hold itself.
package wasm

import (
	_ "embed"
	"encoding/base64"

	"github.com/octavo-fp8/octavo/internal/page"
	labpage "github.com/octavo-fp8/octavo/lab/page"
)

var (
	//go:embed octavo.wasm.gz
	program []byte

	//go:embed wasm_exec.js
	runtime string // Go's part in JavaScript: it must be that of the compiler that built the program

	//go:embed call.js
	call string

	//go:embed LICENSE-Go
	license string
)

// Add lets a page call the library, by the JavaScript function octavo of call.js, from script,
// which stands at its end.
func Add(p *labpage.Page, script string) {
	p.Put("<script type=\"text/plain\" id=\"octavo-wasm\">%s</script>\n", base64.StdEncoding.EncodeToString(program))
	p.WebAssembly = true
	p.Script += page.HTML("/* Of Go, whose runtime follows:\n\n" + license + "*/\n" + runtime + call + script)
}
