package report

import (
	"io"
	"time"

	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/policy"
)

// Arm prints what is armed after arm or disarm, and what is to be known of it.
func Arm(w io.Writer, st Style, r pivot.ArmResult) error {
	out := &sticky{w: w}
	for _, a := range r.Arms {
		out.line(armText(st, "Armed", a))
	}
	for _, n := range r.Notes {
		out.line(st.dress(waits, "note") + "  " + n)
	}
	if r.Message != "" {
		out.line(r.Message)
	}
	return out.err
}

// armText is one arm: "Armed: namespace fleet, by admin since …, until …".
func armText(st Style, what string, a policy.Arm) string {
	text := st.dress(heading, what) + ": " + a.Scope().String()
	if a.HoldOwners {
		text += ", owner references held"
	}
	text += ", by " + a.By + " since " + a.Since.Format(time.RFC3339)
	if a.Expired {
		text += ", " + st.dress(wrong, "expired on "+a.Expires.Format(time.RFC3339)) + " and still in force: renew it with `move-hook arm` or end it with `move-hook disarm`"
	} else {
		text += ", until " + a.Expires.Format(time.RFC3339)
	}
	if a.Partial {
		text += "; " + st.dress(wrong, "half of it is missing") + ": run the same `move-hook arm` again"
	}
	return text
}

// writePolicies prints what each side is armed and guarded with.
func writePolicies(out *sticky, st Style, sides []pivot.PolicyStatus) {
	for _, s := range sides {
		for _, a := range s.Arms {
			out.line(armText(st, "The "+s.On+" is armed", a))
		}
		switch s.Guard {
		case policy.GuardInstalled:
			out.line("The " + s.On + " is guarded: what is labelled for adoption is neither deleted nor scaled there")
		case policy.GuardPartial:
			out.line("Half of the guard is on the " + s.On + ", without effect: the next command that needs it completes it, `move-hook disarm` removes it")
		case policy.GuardAbsent:
		}
		if s.Stopped != nil {
			out.line("The providers of the " + s.On + " are scaled to zero since " + s.Stopped.Format(time.RFC3339) +
				": `move-hook post` scales them up once what arrived is complete, `move-hook disarm` at once")
		}
		if s.Unknown != "" {
			out.line("Whether the " + s.On + " is armed or guarded, or its providers are stopped, is not wholly known: " + s.Unknown)
		}
	}
}
