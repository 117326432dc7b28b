// Package flow holds the two values that every flow of move-hook shares with
// whoever runs it: how it ended, and what it says while it runs. It imports no
// client, so printers may use it.
package flow

import (
	"errors"
	"time"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Outcome is how a flow ended. That the API failed is an error, never an outcome.
type Outcome string

const (
	// Done: everything that was asked for is so.
	Done Outcome = "done"
	// Findings: something was judged to be wrong and nothing further was done.
	Findings Outcome = "findings"
	// Deferred: something is still awaited; the same command may be run again.
	Deferred Outcome = "deferred"
	// Blocked: going on would do harm; running the same command again does not help.
	Blocked Outcome = "blocked"
)

// ErrUsage is what an error of the arguments is, by errors.Is: they cannot be used
// together, or something that is needed is not given.
var ErrUsage = errors.New("the arguments cannot be used")

// Usage marks an error as ErrUsage and leaves its words alone.
func Usage(err error) error { return usage{err} }

type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

func (u usage) Is(target error) bool { return target == ErrUsage }

// Write is one write in kubectl's manner: "machine.cluster.x-k8s.io/cp-0 owners
// corrected", with " (dry run)" behind it where nothing was stored.
type Write string

// Worse returns the outcome that weighs more: blocked, deferred, findings, done.
func (o Outcome) Worse(other Outcome) Outcome {
	if other.weight() > o.weight() {
		return other
	}
	return o
}

func (o Outcome) weight() int {
	switch o {
	case Blocked:
		return 3
	case Deferred:
		return 2
	case Findings:
		return 1
	case Done:
		return 0
	}
	return 0
}

// Update is one thing to say while a flow runs. Every field may be empty:
// printers show what is there. Updates of different Clusters may come from
// different goroutines, but never two at the same time.
type Update struct {
	Time time.Time `json:"time"`
	// Step names the step of the flow that begins: "Holding the scalers".
	Step string `json:"step,omitempty"`
	// Cluster is zero where the update is about all of them.
	Cluster graph.ID `json:"cluster,omitzero"`
	// Phase, Waiting, Refusals and Notes are the last decision about Cluster. An
	// update is sent when they change, never once a pass.
	Phase    adopt.Phase       `json:"phase,omitempty"`
	Waiting  []adopt.Missing   `json:"waiting,omitempty"`
	Refusals []finding.Finding `json:"refusals,omitempty"`
	Notes    []finding.Finding `json:"notes,omitempty"`
	// Wrote is a write that was just made.
	Wrote Write `json:"wrote,omitempty"`
	// Message is a sentence about anything else, for example a kind that cannot be watched.
	Message string `json:"message,omitempty"`
	// Warning: Message is about something that may keep the flow from ending well.
	Warning bool `json:"warning,omitempty"`
}

// Progress receives updates. It must not block for long. Nil is allowed wherever
// an option has this type.
type Progress func(Update)

// Say calls p if there is one.
func (p Progress) Say(u Update) {
	if p != nil {
		p(u)
	}
}
