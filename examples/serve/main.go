// Serve answers completions requests of OpenAI's clients from a directory of Hugging Face. Weights
// are packed in FP8 once; a request gets the same tokens whatever runs beside it.
//
//	go run ./examples/serve Qwen3-0.6B
//	curl localhost:8080/v1/completions -d '{"prompt": "Once upon a time", "max_tokens": 32}'
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/generate"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/nn/tokenizer"
)

func main() {
	address := flag.String("address", "localhost:8080", "`host:port` to listen on")
	cache := flag.Int64("cache", 1<<30, "`bytes` for keys and values")
	flag.Parse()
	s, err := open(context.Background(), flag.Arg(0), generate.ServerOptions{CacheBytes: *cache})
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("%s is served on http://%s/v1", s.name, *address)
	log.Fatal(http.ListenAndServe(*address, s.handler()))
}

// service is a model that is served.
type service struct {
	*generate.Server
	text *tokenizer.Tokenizer
	ends []int32
	name string
}

func open(ctx context.Context, dir string, o generate.ServerOptions) (*service, error) {
	c, err := checkpoint.Open(dir)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	text, noText := tokenizer.Read(filepath.Join(dir, "tokenizer.json"))
	ends, noEnds := hf.Ends(c)
	m, noModel := hf.Open(ctx, c, hf.Options{})
	if err := cmp.Or(noText, noEnds, noModel); err != nil {
		return nil, err
	}
	fp8 := nn.DefaultFP8().Forward
	g, err := generate.New(ctx, m.Model, generate.Options{FP8: &fp8, Read: m.Read, BatchInvariant: true})
	if err != nil {
		return nil, err
	}
	s, err := generate.NewServer(g, o)
	return &service{s, text, ends, filepath.Base(dir)}, err
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": []any{
			map[string]any{"id": s.name, "object": "model", "owned_by": "octavo"}}})
	})
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) {
		if err := s.complete(w, r); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": err.Error()}})
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		mux.ServeHTTP(w, r)
	})
}

// complete answers a request. The error is of what came before the answer began.
func (s *service) complete(w http.ResponseWriter, r *http.Request) error {
	q := struct {
		Prompt                          string
		MaxTokens                       int     `json:"max_tokens"`
		TopP                            float64 `json:"top_p"`
		Temperature                     float64
		Seed                            uint64
		Stream                          bool
		Stop, Echo, Logprobs, Suffix, N any
	}{MaxTokens: 16, Temperature: 1}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&q); err != nil {
		return err
	}
	if q.Stop != nil || q.Echo == true || q.Logprobs != nil || q.Suffix != nil || q.N != nil && q.N != 1.0 || q.MaxTokens < 1 {
		return errors.New("want one completion of a token or more, without stop, echo, logprobs and suffix")
	}
	prompt, err := s.text.Encode(q.Prompt)
	text, noText := s.text.Stream(false)
	if err := cmp.Or(err, noText); err != nil {
		return err
	}
	prompt = slices.Concat(s.text.Prefix(), prompt)
	tokens, err := s.Submit(r.Context(), generate.Request{
		Prompt: prompt, Tokens: q.MaxTokens, Ends: s.ends,
		Sampling: generate.Sampling{Temperature: q.Temperature, TopP: q.TopP, Seed: q.Seed},
	})
	if err != nil {
		return err
	}
	id, begun := fmt.Sprintf("cmpl-%x", time.Now().UnixNano()), time.Now().Unix()
	kind, whole, before, after := "application/json", "", "", ""
	send := func(before, text string, reason any, after string, made int) {
		choice := map[string]any{"index": 0, "text": text, "finish_reason": reason, "logprobs": nil}
		data, _ := json.Marshal(map[string]any{
			"id": id, "object": "text_completion", "created": begun, "model": s.name, "choices": []any{choice},
			"usage": map[string]int{"prompt_tokens": len(prompt), "completion_tokens": made, "total_tokens": len(prompt) + made},
		})
		w.Header().Set("Content-Type", kind)
		fmt.Fprintf(w, "%s%s%s", before, data, after)
		http.NewResponseController(w).Flush()
	}
	if q.Stream {
		before, after, kind = "data: ", "\n\ndata: [DONE]\n\n", "text/event-stream"
	}
	for made := 1; ; made++ {
		token, ok, err := tokens.Next()
		switch {
		case err != nil && (made == 1 || !q.Stream):
			return err
		case err != nil:
			panic(http.ErrAbortHandler) // the client sees that it was cut off
		case !ok:
			result, _ := tokens.Result()
			reason := map[bool]string{true: "stop", false: "length"}[result.Stop == generate.StopEnd]
			send(before, whole+text.End(), reason, after, made-1)
			return nil
		case q.Stream:
			send("data: ", text.Add(token), nil, "\n\n", made)
		default:
			whole += text.Add(token)
		}
	}
}
