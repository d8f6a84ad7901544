package main

import (
	"bufio"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/generate"
	"github.com/octavo-fp8/octavo/nn/hf"
)

// served returns the address of a small model whose tokens are bytes.
func served(t *testing.T) string {
	t.Helper()
	m, err := nn.NewLlama(nn.Config{Vocab: 256, Dim: 64, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 96, Context: 512}, 1)
	require.NoError(t, err)
	for i, p := range m.Params() {
		if p.Decay {
			p.Randomize(1, uint64(i), 0.2)
		}
	}
	dir := filepath.Join(t.TempDir(), "small")
	require.NoError(t, hf.Save(t.Context(), m, dir, hf.SaveOptions{Bytes: true}))
	s, err := open(t.Context(), dir, generate.ServerOptions{CacheBytes: 1 << 20})
	require.NoError(t, err)
	server := httptest.NewServer(s.handler())
	t.Cleanup(func() {
		server.Close()
		s.Close()
	})
	return server.URL + "/v1/"
}

// completion is an answer.
type completion struct {
	Model   string
	Choices []struct {
		Text   string
		Reason *string `json:"finish_reason"`
	}
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
	Error *struct{ Message string }
}

func post(t *testing.T, url, body string) (*http.Response, error) {
	t.Helper()
	return http.Post(url+"completions", "application/json", strings.NewReader(body))
}

func answered(t *testing.T, url, body string) (c completion) {
	t.Helper()
	r, err := post(t, url, body)
	require.NoError(t, err)
	defer r.Body.Close()
	require.NoError(t, json.NewDecoder(r.Body).Decode(&c))
	return c
}

// TestCompletions checks the fields that OpenAI's clients read, and that a stream has the same text.
func TestCompletions(t *testing.T) {
	url := served(t)
	whole := answered(t, url, `{"model": "small", "prompt": "Once", "max_tokens": 24, "temperature": 0}`)
	require.Equal(t, "small", whole.Model)
	require.Equal(t, "length", *whole.Choices[0].Reason)
	require.Equal(t, 4, whole.Usage.Prompt)
	require.Equal(t, 24, whole.Usage.Completion)

	r, err := post(t, url, `{"prompt": "Once", "max_tokens": 24, "temperature": 0, "stream": true}`)
	require.NoError(t, err)
	defer r.Body.Close()
	require.Equal(t, "text/event-stream", r.Header.Get("Content-Type"))
	var text strings.Builder
	events, last := 0, ""
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			require.Empty(t, lines.Text())
			continue
		}
		if last = data; data == "[DONE]" {
			break
		}
		var c completion
		require.NoError(t, json.Unmarshal([]byte(data), &c))
		text.WriteString(c.Choices[0].Text)
		events++
	}
	require.Equal(t, "[DONE]", last)
	require.Equal(t, 25, events)
	require.Equal(t, whole.Choices[0].Text, text.String())

	models, err := http.Get(url + "models")
	require.NoError(t, err)
	defer models.Body.Close()
	list, err := io.ReadAll(models.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"object": "list", "data": [{"id": "small", "object": "model", "owned_by": "octavo"}]}`, string(list))
	for body, want := range map[string]string{
		`{"prompt": 3}`:                        "json: cannot unmarshal number",
		`{"prompt": "a", "max_tokens": 0}`:     "want one completion",
		`{"prompt": "a", "n": 2}`:              "want one completion",
		`{"prompt": ""}`:                       "the prompt has no tokens",
		`{"prompt": "a", "stop": "b"}`:         "without stop, echo",
		`{"prompt": "a", "temperature": -1.5}`: "Sampling.Temperature is -1.5",
	} {
		c := answered(t, url, body)
		require.NotNil(t, c.Error, body)
		require.Contains(t, c.Error.Message, want)
	}
}

// TestLoad has many clients, of which some are slow and some leave: all others get what they get
// alone, and memory stays what it is. It takes a second, and a minute in full runs.
func TestLoad(t *testing.T) {
	url := served(t)
	took := time.Second
	if testutil.Full() {
		took = time.Minute
	}
	const body = `{"prompt": "To be or not to be, that is the question: ", "max_tokens": 40, "seed": 7, "stream": false}`
	want := answered(t, url, body).Choices[0].Text
	before := runtime.NumGoroutine()
	end, done := time.Now().Add(took), make([]int, 64)
	var clients sync.WaitGroup
	for client := range done {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(uint64(client), 1))
			for time.Now().Before(end) {
				switch client % 8 {
				case 0: // leaves
					r, err := post(t, url, strings.Replace(body, "false", "true", 1))
					if err == nil {
						io.CopyN(io.Discard, r.Body, random.Int64N(2000))
						r.Body.Close()
					}
				case 1: // slow
					r, err := post(t, url, strings.Replace(body, "false", "true", 1))
					if err == nil {
						for err == nil {
							_, err = io.CopyN(io.Discard, r.Body, 300)
							time.Sleep(10 * time.Millisecond)
						}
						r.Body.Close()
					}
				default:
					if got := answered(t, url, body).Choices[0].Text; got != want {
						t.Errorf("client %d: %q, want %q", client, got, want)
						return
					}
				}
				done[client]++
			}
		})
	}
	clients.Wait()
	total := 0
	for _, n := range done {
		total += n
	}
	http.DefaultClient.CloseIdleConnections()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("%d requests of 64 clients in %v, %d bytes on the heap, %d goroutines, %d before", total, took, m.HeapAlloc, runtime.NumGoroutine(), before)
	require.Positive(t, total)
	require.Less(t, m.HeapAlloc, uint64(64<<20))
	for limit := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+2; runtime.Gosched() {
		require.True(t, time.Now().Before(limit), "goroutines are left")
	}
}

// TestRefuses names what is missing in a directory.
func TestRefuses(t *testing.T) {
	_, err := open(t.Context(), filepath.Join(t.TempDir(), "none"), generate.ServerOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
}
