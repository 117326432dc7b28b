package hack_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// render fills in a template of a release.
func render(t *testing.T, text string, functions template.FuncMap, values any) string {
	t.Helper()
	parsed, err := template.New("release").Funcs(functions).Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, values); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// archives are the files of a release and the programs in each, by .goreleaser.yaml.
func archives(t *testing.T) map[string][]string {
	t.Helper()
	var release struct {
		Builds []struct {
			ID, Binary   string
			Goos, Goarch []string
		}
		Archives []struct {
			IDs             []string
			NameTemplate    string `json:"name_template"`
			Formats         []string
			FormatOverrides []struct {
				Goos    string
				Formats []string
			} `json:"format_overrides"`
		}
	}
	if err := yaml.Unmarshal(read(t, "../.goreleaser.yaml"), &release); err != nil {
		t.Fatal(err)
	}
	files := map[string][]string{}
	for _, archive := range release.Archives {
		for _, build := range release.Builds {
			if !slices.Contains(archive.IDs, build.ID) {
				continue
			}
			for _, goos := range build.Goos {
				format, suffix := archive.Formats[0], ""
				for _, o := range archive.FormatOverrides {
					if o.Goos == goos {
						format = o.Formats[0]
					}
				}
				if goos == "windows" {
					suffix = ".exe"
				}
				for _, arch := range build.Goarch {
					name := render(t, archive.NameTemplate, nil, map[string]string{"Os": goos, "Arch": arch}) + "." + format
					files[name] = append(files[name], build.Binary+suffix)
				}
			}
		}
	}
	return files
}

// TestRelease_KrewFindsEveryArchive: what the one file makes the other must name.
func TestRelease_KrewFindsEveryArchive(t *testing.T) {
	manifest := render(t, string(read(t, "../.krew.yaml")), template.FuncMap{
		// As krew-release-bot writes it, with the digest of what it downloads.
		"addURIAndSha": func(uri, tag string) string {
			return "uri: " + render(t, uri, nil, map[string]string{"TagName": tag}) + "\n    sha256: 0"
		},
	}, map[string]string{"TagName": "v0.1.0"})
	var plugin struct {
		Spec struct {
			Version   string
			Platforms []struct {
				URI, Sha256, Bin string
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(manifest), &plugin); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	if plugin.Spec.Version != "v0.1.0" {
		t.Errorf("version %q", plugin.Spec.Version)
	}
	made := archives(t)
	named := map[string][]string{}
	for _, p := range plugin.Spec.Platforms {
		file, ok := strings.CutPrefix(p.URI, "https://github.com/move-hook/move-hook/releases/download/v0.1.0/")
		if !ok || p.Sha256 == "" {
			t.Errorf("%+v is not of the release", p)
		}
		if platform := p.Selector.MatchLabels["os"] + "_" + p.Selector.MatchLabels["arch"]; !strings.Contains(file, platform) {
			t.Errorf("%s is for %s", platform, file)
		}
		named[file] = []string{p.Bin}
	}
	for file, programs := range made {
		if slices.ContainsFunc(programs, func(p string) bool { return strings.HasPrefix(p, "clusterctl-") }) {
			delete(made, file) // the plugins, which krew needs not
		}
	}
	if diff := cmp.Diff(made, named); diff != "" {
		t.Errorf("archives of the release (-) and of the krew manifest (+):\n%s", diff)
	}
	if len(named) != 6 {
		t.Errorf("want three systems on two architectures, have %d archives", len(named))
	}
}
