// Package quantizer gives the verdict on what a quantizer made of an array: whether scales
// and codes have the bits of the profile that is claimed, which differ first, and which fault
// explains them. [Identify] says of codes and scales without a claim which profile gives
// them.
//
// Scales are judged against the values, and codes twice: against the values under the
// claimed scales, and under those that are stored. A fault is a change of one part of a
// [rule], such as what an amax is taken over, how a scale is rounded, which scale codes are
// made with or how they are rounded: see [Faults]. Where the documentation of package scaling
// leaves something undefined, what differs there is undecided.
package quantizer
