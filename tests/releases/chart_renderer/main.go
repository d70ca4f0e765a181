// Renders the templates of a chart as helm's engine does: Go's text/template with sprig's functions, and with include and
// toYaml. For machines to which helm itself cannot come; Debian has all of its parts.
//
//	main CHART VALUES.yaml RELEASE
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func read(path string) map[string]interface{} {
	text, err := os.ReadFile(path)
	check(err)
	fields := map[string]interface{}{}
	check(yaml.Unmarshal(text, &fields))
	return fields
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	chart, values, release := os.Args[1], os.Args[2], os.Args[3]
	facts := map[string]interface{}{}
	for name, value := range read(filepath.Join(chart, "Chart.yaml")) {
		facts[strings.ToUpper(name[:1])+name[1:]] = value
	}
	root := template.New("chart").Option("missingkey=error").Funcs(sprig.TxtFuncMap())
	root.Funcs(template.FuncMap{
		"include": func(name string, data interface{}) (string, error) {
			var out bytes.Buffer
			err := root.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"toYaml": func(value interface{}) (string, error) {
			text, err := yaml.Marshal(value)
			return strings.TrimSuffix(string(text), "\n"), err
		},
	})
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(err)
		_, err = root.New(filepath.Base(file)).Parse(string(text))
		check(err)
	}
	data := map[string]interface{}{
		"Values":  read(values),
		"Chart":   facts,
		"Release": map[string]interface{}{"Name": release, "Namespace": "default"},
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".yaml") {
			fmt.Println("---")
			check(root.ExecuteTemplate(os.Stdout, filepath.Base(file), data))
		}
	}
}
