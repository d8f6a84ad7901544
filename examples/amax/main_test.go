package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// startGoroutine stands in for a process, which an emulator could not start.
func startGoroutine(number int) (*worker, error) {
	fromLead, toWorker := io.Pipe()
	fromWorker, toLead := io.Pipe()
	go func() {
		toLead.CloseWithError(work(number, fromLead, toLead))
	}()
	return &worker{json.NewEncoder(toWorker), json.NewDecoder(fromWorker), func() { toWorker.Close() }}, nil
}

func Example() {
	if err := lead(os.Stdout, startGoroutine); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 4 processes have the same histories after 20 steps
	// a worker sent 201 bytes a step; the histories are 4662
}
