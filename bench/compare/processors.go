package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// pinning returns the beginning of a command line that keeps a program on a list of
// processors, and says what it does. No list means the last two that this process may
// use, of different cores if there are; benchmarks use no more than two.
func pinning(list string) (pin []string, where string) {
	if list == "all" {
		return nil, "not pinned to processors"
	}
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		return nil, "not pinned to processors: there is no taskset"
	}
	if list == "" {
		list = join(choose(allowed(), core))
	}
	if list == "" {
		return nil, "not pinned to processors: the system does not say which there are"
	}
	return []string{taskset, "-c", list}, "pinned to processors " + list
}

// choose returns the last two processors, preferably of different cores.
func choose(processors []int, core func(int) string) []int {
	if len(processors) <= 2 {
		return processors
	}
	last := processors[len(processors)-1]
	for _, p := range slices.Backward(processors) {
		if core(p) != core(last) {
			return []int{p, last}
		}
	}
	return processors[len(processors)-2:]
}

// allowed returns the processors that this process may use.
func allowed() []int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(status)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return parseList(strings.TrimSpace(list))
		}
	}
	return nil
}

// parseList reads a list such as 0-3,8. It returns nil for what is none.
func parseList(list string) (processors []int) {
	for part := range strings.SplitSeq(list, ",") {
		first, last, ok := strings.Cut(part, "-")
		if !ok {
			last = first
		}
		lo, err := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil {
			return nil
		}
		for p := lo; p <= hi; p++ {
			processors = append(processors, p)
		}
	}
	return processors
}

// core names the core that a processor is a thread of: by all its threads.
func core(processor int) string {
	threads, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", processor))
	if err != nil {
		return strconv.Itoa(processor)
	}
	return string(threads)
}

func join(processors []int) string {
	var parts []string
	for _, p := range processors {
		parts = append(parts, strconv.Itoa(p))
	}
	return strings.Join(parts, ",")
}
