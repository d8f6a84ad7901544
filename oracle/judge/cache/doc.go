// Package cache gives the verdict on the keys and values that an engine wrote to its cache and
// read back: whether scales, codes and what was read have the bits that they are claimed to
// have, each judged by what came before it, and which fault explains what is wrong.
//
// [Check] takes the input of K and of V, what was written and what was read ([Side]) and a
// [Claim], and returns a [Verdict], which writes itself as text, as JSON and as a page. What is
// not there is not judged, and the verdict says so by name.
package cache
