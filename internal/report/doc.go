// Package report turns results into text: trees, tables, lists, JSON and YAML,
// and the progress of a running command.
//
// It knows result types (graph.Graph, adopt.Plan, []finding.Finding and what
// the flows return) and an io.Writer, never a client: whatever is printed was
// read before. The same result prints the same bytes, coloured or not, and
// colour never carries what the words do not say.
package report
