package outdir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPublish: files are seen while a run goes on, beside those of an earlier one, and go with it.
func TestPublish(t *testing.T) {
	dir := t.TempDir()
	content := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(data)
	}
	begin := func(o Options) *Run {
		r, err := Create(dir, o)
		require.NoError(t, err)
		return r
	}
	publish := func(r *Run, page string) {
		require.NoError(t, r.Publish(Manifest{Kind: "train", Command: "octavo train"}, File{Name: "live.html", Data: []byte(page)}, File{Name: "live.json", Data: []byte("{}")}))
	}

	r := begin(Options{Files: []string{"live.html", "live.json"}})
	require.True(t, Held(dir))
	publish(r, "1")
	publish(r, "2")
	require.Equal(t, "2", content("live.html"))
	m, err := ReadLive(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"live.html", "live.json"}, m.Files)
	require.NoError(t, r.Add("index.html", text("whole")))
	require.NoError(t, r.Add("live.html", text("see index.html")))
	require.NoError(t, r.Commit(Manifest{Kind: "train"}))
	require.Equal(t, "see index.html", content("live.html"))
	require.NoFileExists(t, filepath.Join(dir, "live.json"))
	require.NoFileExists(t, filepath.Join(dir, LiveName))
	require.False(t, Held(dir))
	require.NoFileExists(t, filepath.Join(dir, lockName), "to ask makes none")

	// Another in the same directory leaves the first as it was until it ends, and publishes anew.
	r = begin(Options{Overwrite: true})
	publish(r, "3")
	require.Equal(t, "whole", content("index.html"))
	require.NoError(t, r.Publish(Manifest{Kind: "train"}, File{Name: "other.html", Data: []byte("4")}))
	unlock(r.lock) // as if it were killed

	// What a run left that was killed is in nobody's way, and goes in the end.
	r = begin(Options{Overwrite: true, Files: []string{"other.html"}})
	require.Equal(t, "4", content("other.html"), "until there is something newer")
	require.NoError(t, r.Add("index.html", text("new")))
	require.NoError(t, r.Commit(Manifest{Kind: "train"}))
	require.Equal(t, "new", content("index.html"))
	for _, name := range []string{"other.html", "live.html", "live.json", LiveName} {
		require.NoFileExists(t, filepath.Join(dir, name))
	}
	_, err = ReadLive(dir)
	require.ErrorIs(t, err, os.ErrNotExist)

	// One that ends without a result leaves nothing.
	r = begin(Options{Overwrite: true})
	publish(r, "5")
	r.Abort()
	require.NoFileExists(t, filepath.Join(dir, "live.json"))
	require.NoFileExists(t, filepath.Join(dir, LiveName))

	// One that shows itself in a file of the run that it was to replace puts that back.
	r = begin(Options{Overwrite: true})
	require.NoError(t, r.Add("live.html", text("see index.html")))
	require.NoError(t, r.Commit(Manifest{Kind: "train"}))
	r = begin(Options{Overwrite: true})
	publish(r, "6")
	publish(r, "7")
	require.Equal(t, "7", content("live.html"))
	r.Abort()
	require.Equal(t, "see index.html", content("live.html"))
	require.NoFileExists(t, filepath.Join(dir, "live.json"))

	// A file of nobody's is not replaced.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.html"), []byte("mine"), 0o666))
	r = begin(Options{Overwrite: true})
	defer r.Abort()
	require.ErrorContains(t, r.Publish(Manifest{Kind: "train"}, File{Name: "mine.html"}), "mine.html is there and is of no run")
	require.Error(t, r.Publish(Manifest{Kind: "train"}, File{Name: LiveName}))
	require.Equal(t, "mine", content("mine.html"))
}
