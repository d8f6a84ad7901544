package prometheus

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/octavo-fp8/octavo/internal/promtext"
	"github.com/octavo-fp8/octavo/telemetry"
)

// Handler returns a handler whose page is what r holds at the moment it is asked, also
// while r is in use. A nil r is an empty Recorder. Methods other than GET and HEAD are
// refused.
//
//	http.Handle("/metrics", prometheus.Handler(rec))
func Handler(r *telemetry.Recorder) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
			return
		}
		var text bytes.Buffer
		_ = Write(&text, r.Snapshot()) // a buffer has no errors
		w.Header().Set("Content-Type", promtext.ContentType)
		w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
		_, _ = w.Write(text.Bytes()) // whoever asked is gone if that fails
	})
}
