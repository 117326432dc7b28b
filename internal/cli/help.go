package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// long is a long help text with the exit codes that the command can end with.
func long(text string, codes ...int) string {
	var b strings.Builder
	b.WriteString(text)
	b.WriteString("\n\nExit codes:\n")
	all := ExitCodes()
	for _, code := range codes {
		fmt.Fprintf(&b, "  %d  %-9s %s\n", code, all[code].Name, all[code].Meaning)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Reference is the reference of all commands in Markdown: usage, flags with
// defaults, examples, exit codes. It is what docs/reference.md is generated from.
func Reference() string {
	root := (&app{}).root()
	root.InitDefaultCompletionCmd()
	var b strings.Builder
	b.WriteString("# move-hook: reference\n\nGenerated from the commands' own help; edit that.\n\n## Exit codes\n\n")
	b.WriteString("| code | name | means |\n|---|---|---|\n")
	for _, c := range ExitCodes() {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", c.Code, c.Name, c.Meaning)
	}
	b.WriteString("\n## Flags of every command\n\n")
	flagTable(&b, documented(root.PersistentFlags()))
	for _, cmd := range root.Commands() {
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		cmd.InitDefaultHelpFlag()
		fmt.Fprintf(&b, "\n## %s\n\n", cmd.CommandPath())
		text, _, _ := strings.Cut(cmd.Long, "\n\nExit codes:")
		if text == "" {
			text = cmd.Short + "."
		}
		fmt.Fprintf(&b, "%s\n\n```\n%s\n```\n", strings.TrimSpace(text), cmd.UseLine())
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\n```sh\n%s\n```\n", unindent(cmd.Example))
		}
		if flags := documented(cmd.LocalNonPersistentFlags()); len(flags) > 0 {
			b.WriteString("\n")
			flagTable(&b, flags)
		}
	}
	return b.String()
}

// documented are the flags that the reference lists, sorted by name.
func documented(set *pflag.FlagSet) []*pflag.Flag {
	var flags []*pflag.Flag
	set.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			flags = append(flags, f)
		}
	})
	return flags
}

func flagTable(b *strings.Builder, flags []*pflag.Flag) {
	b.WriteString("| flag | default | |\n|---|---|---|\n")
	for _, f := range flags {
		value, usage := pflag.UnquoteUsage(f)
		name := "`--" + f.Name
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + ", --" + f.Name
		}
		if value != "" {
			name += " " + value
		}
		fallback := ""
		if f.DefValue != "" && f.DefValue != "false" {
			fallback = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(b, "| %s` | %s | %s |\n", name, fallback, usage)
	}
}

// unindent takes off the two spaces that cobra's help wants in front of examples.
func unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
