//go:build js

// The library as a program of WebAssembly, which pages carry and call: see package wasm,
// in which scripts/wasm puts it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall/js"

	"github.com/octavo-fp8/octavo/cmd/internal/explore"
	"github.com/octavo-fp8/octavo/cmd/internal/planning"
)

// functions are what pages call, by name. One program has those of all pages: most of it is
// Go's runtime, which each would have again.
var functions = map[string]func(request []byte, file *io.SectionReader) (any, error){
	"codes":   function(explore.Codes),
	"explore": function(explore.Explore),
	"plan":    function(planning.WhatIf),
}

// function is f on JSON. A page's function takes its request, and the file that came with it
// or nil.
func function[Q, A any](f func(Q, *io.SectionReader) (A, error)) func([]byte, *io.SectionReader) (any, error) {
	return func(request []byte, file *io.SectionReader) (any, error) {
		var q Q
		if err := json.Unmarshal(request, &q); err != nil {
			return nil, err
		}
		return f(q, file)
	}
}

func main() {
	js.Global().Set("octavoCall", js.FuncOf(func(_ js.Value, args []js.Value) any {
		name, request, file := args[0].String(), []byte(args[1].String()), section(args[2])
		return promise(func() (string, error) { return call(name, request, file) })
	}))
	select {}
}

// call returns the answer of a function as JSON. A panic is an error, so that the page can ask
// again.
func call(name string, request []byte, file *io.SectionReader) (answer string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %v", name, p)
		}
	}()
	f, ok := functions[name]
	if !ok {
		return "", fmt.Errorf("there is no function %q", name)
	}
	a, err := f(request, file)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(a)
	return string(text), err
}

// promise is a JavaScript promise of what work returns, which may wait for other promises.
func promise(work func() (string, error)) js.Value {
	var executor js.Func
	executor = js.FuncOf(func(_ js.Value, settle []js.Value) any {
		resolve, reject := settle[0], settle[1]
		go func() {
			defer executor.Release()
			text, err := work()
			if err != nil {
				reject.Invoke(js.Global().Get("Error").New(err.Error()))
				return
			}
			resolve.Invoke(text)
		}()
		return nil
	})
	return js.Global().Get("Promise").New(executor)
}

// blob reads a JavaScript Blob, such as a File, part by part: it may be larger than memory.
type blob struct{ js.Value }

// section returns what a page gave as a file, nil if it gave none.
func section(file js.Value) *io.SectionReader {
	if !file.Truthy() {
		return nil
	}
	return io.NewSectionReader(blob{file}, 0, int64(file.Get("size").Float()))
}

func (b blob) ReadAt(p []byte, off int64) (int, error) {
	buffer, err := await(b.Call("slice", float64(off), float64(off+int64(len(p)))).Call("arrayBuffer"))
	if err != nil {
		return 0, err
	}
	n := js.CopyBytesToGo(p, js.Global().Get("Uint8Array").New(buffer))
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// await waits for a promise.
func await(promise js.Value) (js.Value, error) {
	type outcome struct {
		value js.Value
		err   error
	}
	done := make(chan outcome, 1)
	then := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- outcome{value: args[0]}
		return nil
	})
	defer then.Release()
	failed := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- outcome{err: errors.New(args[0].Call("toString").String())}
		return nil
	})
	defer failed.Release()
	promise.Call("then", then, failed)
	o := <-done
	return o.value, o.err
}
