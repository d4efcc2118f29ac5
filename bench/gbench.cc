// SPDX-License-Identifier: MIT
// The only host C++ of the project, because Google Benchmark is C++.
#include "gbench.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace
{

std::vector<gbench_case_t *> cases;
std::vector<std::pair<std::string, std::string>> context_lines;

std::string name_of(const gbench_case_t &c)
{
    return std::string(c.group) + "/" + c.name;
}

// Linear interpolation between the order statistics: q = 0.5 is the median.
double quantile(std::vector<double> values, double q)
{
    std::sort(values.begin(), values.end());
    const double at = q * (values.size() - 1);
    const size_t below = static_cast<size_t>(at);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - below) * (values[above] - values[below]);
}

std::string quoted(const std::string &text)
{
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += '\\';
        out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return out + '"';
}

void body(benchmark::State &state, gbench_case_t *c, int *repetition)
{
    if (*repetition == 0)
        c->measure(c->context);
    const int r = (*repetition)++;
    for (auto _ : state)
        state.SetIterationTime(c->failure ? 0 : c->seconds[r]);
    state.counters["mhz"] = c->failure ? 0 : c->mhz[r];
}

// What a case's repetitions come to.
struct Row {
    const gbench_case_t *c;
    std::vector<double> seconds;
    double median, q1, q3, mhz;
    double percent_cublas, percent_cutlass, percent_ceiling; // -1: unknown

    double rate() const { return c->operations / median; }
};

class Output
{
  public:
    Output(FILE *file, std::string format) : file_(file), format_(std::move(format)) {}

    void begin()
    {
        if (format_ == "json") {
            fprintf(file_, "{\n\"context\": {");
            const char *separator = "\n";
            for (const auto &line : context_lines) {
                fprintf(file_, "%s  %s: %s", separator, quoted(line.first).c_str(),
                        quoted(line.second).c_str());
                separator = ",\n";
            }
            fprintf(file_, "\n},\n\"results\": [");
        } else if (format_ == "csv") {
            for (const auto &line : context_lines)
                fprintf(file_, "# %s: %s\n", line.first.c_str(), line.second.c_str());
            fprintf(
                file_,
                "problem,kernel,note,median_us,q1_us,q3_us,tflops,percent_cublas,percent_cutlass,"
                "percent_ceiling,gb_per_s,mhz,relative_error,failure\n");
        } else {
            for (const auto &line : context_lines)
                fprintf(file_, "%-12s %s\n", line.first.c_str(), line.second.c_str());
        }
    }

    void row(const Row &r)
    {
        if (format_ == "json")
            json(r);
        else if (format_ == "csv")
            csv(r);
        else
            table(r);
        fflush(file_);
    }

    void end()
    {
        if (format_ == "json")
            fprintf(file_, "\n]\n}\n");
        fflush(file_);
    }

  private:
    void table(const Row &r)
    {
        if (group_ != r.c->group) {
            group_ = r.c->group;
            fprintf(file_, "\n%s\n  %-18s %11s %23s %8s %8s %9s %9s %8s %6s %9s\n", group_.c_str(),
                    "kernel", "median us", "quartiles us", "TFLOPS", "% cuBLAS", "% CUTLASS",
                    "% ceiling", "GB/s", "MHz", "rel error");
        }
        if (r.c->failure) {
            fprintf(file_, "  %-18s %s\n", r.c->name, r.c->failure);
            return;
        }
        fprintf(file_, "  %-18s %11.2f %11.2f %11.2f %8.2f %8s %9s %9s %8.1f %6s %9s%s%s\n",
                r.c->name, r.median * 1e6, r.q1 * 1e6, r.q3 * 1e6, r.rate() * 1e-12,
                number(r.percent_cublas, "%.1f").c_str(), number(r.percent_cutlass, "%.1f").c_str(),
                number(r.percent_ceiling, "%.1f").c_str(), r.c->bytes / r.median * 1e-9,
                number(r.mhz > 0 ? r.mhz : -1, "%.0f").c_str(), number(r.c->error, "%.1e").c_str(),
                r.c->note ? "  " : "", r.c->note ? r.c->note : "");
    }

    void csv(const Row &r)
    {
        fprintf(
            file_, "%s,%s,%s,%.3f,%.3f,%.3f,%.3f,%s,%s,%s,%.2f,%.0f,%s,%s\n", r.c->group, r.c->name,
            r.c->note ? r.c->note : "", r.median * 1e6, r.q1 * 1e6, r.q3 * 1e6,
            r.c->failure ? 0 : r.rate() * 1e-12, number(r.percent_cublas, "%.2f").c_str(),
            number(r.percent_cutlass, "%.2f").c_str(), number(r.percent_ceiling, "%.2f").c_str(),
            r.c->failure ? 0 : r.c->bytes / r.median * 1e-9, r.mhz,
            number(r.c->error, "%.3e").c_str(), r.c->failure ? quoted(r.c->failure).c_str() : "");
    }

    void json(const Row &r)
    {
        fprintf(file_, "%s\n{\"problem\": %s, \"kernel\": %s", first_ ? "" : ",",
                quoted(r.c->group).c_str(), quoted(r.c->name).c_str());
        first_ = false;
        if (r.c->note)
            fprintf(file_, ", \"note\": %s", quoted(r.c->note).c_str());
        if (r.c->failure) {
            fprintf(file_, ", \"failure\": %s}", quoted(r.c->failure).c_str());
            return;
        }
        fprintf(file_,
                ", \"median_us\": %.3f, \"q1_us\": %.3f, \"q3_us\": %.3f, \"tflops\": %.3f, "
                "\"gb_per_s\": %.2f, "
                "\"mhz\": %.0f",
                r.median * 1e6, r.q1 * 1e6, r.q3 * 1e6, r.rate() * 1e-12,
                r.c->bytes / r.median * 1e-9, r.mhz);
        if (r.percent_cublas >= 0)
            fprintf(file_, ", \"percent_cublas\": %.2f", r.percent_cublas);
        if (r.percent_cutlass >= 0)
            fprintf(file_, ", \"percent_cutlass\": %.2f", r.percent_cutlass);
        if (r.percent_ceiling >= 0)
            fprintf(file_, ", \"percent_ceiling\": %.2f", r.percent_ceiling);
        if (r.c->error >= 0)
            fprintf(file_, ", \"relative_error\": %.3e", r.c->error);
        fprintf(file_, ", \"us\": [");
        for (size_t i = 0; i < r.seconds.size(); ++i)
            fprintf(file_, "%s%.3f", i ? ", " : "", r.seconds[i] * 1e6);
        fprintf(file_, "]}");
    }

    static std::string number(double value, const char *format)
    {
        char text[32] = "-";
        if (value >= 0)
            snprintf(text, sizeof text, format, value);
        return text;
    }

    FILE *file_;
    std::string format_;
    std::string group_; // of the table's last row
    bool first_ = true;
};

class Reporter : public benchmark::BenchmarkReporter
{
  public:
    explicit Reporter(std::vector<Output> outputs)
        : outputs_(std::move(outputs)), rates_(cases.size(), 0)
    {
        for (size_t i = 0; i < cases.size(); ++i)
            numbers_[name_of(*cases[i])] = i;
    }

    bool ReportContext(const Context &) override
    {
        for (Output &output : outputs_)
            output.begin();
        return true;
    }

    void ReportRuns(const std::vector<Run> &runs) override
    {
        Row row = {};
        std::vector<double> mhz;
        size_t number = 0;
        for (const Run &run : runs) {
            if (run.run_type != Run::RT_Iteration)
                continue; // Google Benchmark's mean and deviation: the median is what counts here
            number = numbers_.at(run.run_name.function_name);
            row.seconds.push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
            mhz.push_back(run.counters.at("mhz"));
        }
        if (row.seconds.empty())
            return;
        row.c = cases[number];
        row.median = quantile(row.seconds, 0.5);
        row.q1 = quantile(row.seconds, 0.25);
        row.q3 = quantile(row.seconds, 0.75);
        row.mhz = quantile(mhz, 0.5);
        rates_[number] = row.c->failure ? 0 : row.rate();
        row.percent_cublas = percent(number, row.c->cublas);
        row.percent_cutlass = percent(number, row.c->cutlass);
        row.percent_ceiling = percent(number, row.c->ceiling);
        failures_ += row.c->failure != nullptr;
        for (Output &output : outputs_)
            output.row(row);
    }

    void Finalize() override
    {
        for (Output &output : outputs_)
            output.end();
    }

    int failures() const { return failures_; }

  private:
    double percent(size_t number, int of) const
    {
        return of < 0 || !(rates_[of] > 0) ? -1 : 100 * rates_[number] / rates_[of];
    }

    std::vector<Output> outputs_;
    std::map<std::string, size_t> numbers_;
    std::vector<double> rates_; // operations per second, of the cases that were reported
    int failures_ = 0;
};

} // namespace

int gbench_register(gbench_case_t *c)
{
    cases.push_back(c);
    auto repetition = std::make_shared<int>(0);
    benchmark::RegisterBenchmark(
        name_of(*c).c_str(),
        [c, repetition](benchmark::State &state) { body(state, c, repetition.get()); })
        ->Iterations(1)
        ->Repetitions(c->repetitions)
        ->UseManualTime();
    return static_cast<int>(cases.size()) - 1;
}

void gbench_context(const char *key, const char *value)
{
    context_lines.emplace_back(key, value);
}

int gbench_run(const char *format, const char *path)
{
    std::vector<Output> outputs;
    FILE *file = nullptr;
    if (path) {
        file = fopen(path, "w");
        if (!file)
            return -1;
        outputs.emplace_back(file, format);
        outputs.emplace_back(stdout, "table");
    } else {
        outputs.emplace_back(stdout, format);
    }
    Reporter reporter(std::move(outputs));
    benchmark::RunSpecifiedBenchmarks(&reporter);
    if (file && fclose(file) != 0)
        return -1;
    return reporter.failures();
}
