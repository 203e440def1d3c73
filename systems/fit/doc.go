// Package fit fits the constants of the calibrated model (package
// calibrated) to measured profiles, and judges them by predicting profiles
// that were left out of the fit.
//
// Every fit is robust: medians for constants that measurements show directly,
// Huber's location for delays that add up over a program, Theil-Sen lines
// where two constants come from one relation. Each constant is reported with
// the number of measurements, their median absolute deviation and range;
// constants that the profiles do not identify keep the value they had and are
// listed as such.
package fit
