package report

import (
	"strings"

	"github.com/move-hook/move-hook/internal/watch"
	"github.com/move-hook/move-hook/pkg/adopt"
)

// Summary says in few lines how a post ended: how many Clusters are in which phase,
// and of those that are not adopted why. It has at most limit bytes; what does not
// fit is counted.
func Summary(r watch.Result, limit int) string {
	phases := map[adopt.Phase]int{}
	var open []string
	for _, c := range r.Clusters {
		phases[c.Phase]++
		if c.Phase != adopt.Adopted {
			line := sentence(c.Cluster, standing{phase: c.Phase, about: About(c.Waiting, c.Refusals)})
			if c.Error != "" {
				line += ": " + c.Error
			}
			open = append(open, line)
		}
	}
	var lines []string
	if len(r.Clusters) > 0 {
		lines = append(lines, count(len(r.Clusters), "Cluster")+": "+phaseCounts(phases))
	}
	if r.Message != "" {
		lines = append(lines, r.Message)
	}
	text := strings.Join(lines, "\n")
	for i, line := range open {
		more := "\nand " + itoa(len(open)-i) + " more"
		if len(text)+len("\n")+len(line)+len(more) > limit {
			return text + more
		}
		text += "\n" + line
	}
	return text
}
