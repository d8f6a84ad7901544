// Package progress is how octavo's long operations say how far they are.
//
// A function of octavo that can run longer than a second takes a context.Context, and
// a Reporter in its options, but for those whose documentation says why they take none.
// A nil Reporter costs nothing.
package progress

// Reporter hears how far an operation is.
//
// Progress is called by one goroutine at a time for each operation, at most a few
// times in every percent. done counts finished units of work, never falls, and
// reaches total when the operation succeeds; total stays the same. What a unit is
// differs between operations; shares of the total are comparable. op names the
// operation, such as "exact". The call should return soon: the operation may wait for
// it.
type Reporter interface {
	Progress(op string, done, total int64)
}

// Func is a function as a [Reporter].
type Func func(op string, done, total int64)

// Progress calls f.
func (f Func) Progress(op string, done, total int64) { f(op, done, total) }
