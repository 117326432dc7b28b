// Package adopt decides what has to be written on the target of a pivot, and in
// which order, so that every object is owned as it was before and no controller
// ever acts on an incomplete set.
//
// Decide is pure: a State (what was observed) goes in, a Plan comes out. Nothing
// is remembered between passes: which step comes next follows from facts on the
// API server alone, so a pass may be killed anywhere and run again. Pass is the
// small loop body that joins Decide to a World.
//
// A plan that is deferred or blocked has no steps, by construction.
package adopt
