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

// -1 where all are 0, which is unknown.
double median_of_known(std::vector<double> values)
{
    values.erase(std::remove(values.begin(), values.end(), 0.0), values.end());
    return values.empty() ? -1 : quantile(values, 0.5);
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
}

// What a case's repetitions come to.
struct Row {
    const gbench_case_t *c;
    std::vector<double> seconds;
    double median, q1, q3;
    double events;                                           // modelled: seconds by events after a pause
    double mhz, power, watts, picojoules;                    // -1: unknown; by the counter: watts, and per operation
    double percent_cublas, percent_cutlass, percent_ceiling; // -1: unknown
    double percent_copy;                                     // of its bytes per second
    double percent_published;

    double rate() const { return c->operations / median; }
};

class Output
{
  public:
    Output(FILE *file, std::string format, bool modelled) : file_(file), format_(std::move(format)), modelled_(modelled)
    {
    }

    void begin()
    {
        if (format_ == "json") {
            fprintf(file_, "{\n\"context\": {");
            const char *separator = "\n";
            for (const auto &line : context_lines) {
                fprintf(file_, "%s  %s: %s", separator, quoted(line.first).c_str(), quoted(line.second).c_str());
                separator = ",\n";
            }
            fprintf(file_, "\n},\n\"results\": [");
        } else if (format_ == "csv") {
            for (const auto &line : context_lines)
                fprintf(file_, "# %s: %s\n", line.first.c_str(), line.second.c_str());
            fprintf(file_,
                    "problem,kernel,note,median_us,q1_us,q3_us,tflops,percent_cublas,percent_cutlass,"
                    "percent_ceiling,percent_copy,gb_per_s,mhz,power_w,watts,pj_per_flop,relative_error,failure%s\n",
                    modelled_ ? ",events_us" : "");
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
    struct Column {
        const char *title;
        int width;
        std::string value;
        bool when_measured, when_modelled;
    };

    std::vector<Column> columns(const Row &r) const
    {
        const double watts = r.watts >= 0 ? r.watts : r.power;
        return {
            {"median us", 11, number(r.median * 1e6, "%.2f"), true, true},
            {"quartiles us", 23, number(r.q1 * 1e6, "%.2f") + ' ' + number(r.q3 * 1e6, "%11.2f"), true, false},
            {"events us", 10, number(r.events * 1e6, "%.2f"), false, true},
            {"TFLOPS", 8, number(r.rate() * 1e-12, "%.2f"), true, true},
            {"% cuBLAS", 8, number(r.percent_cublas, "%.1f"), true, false},
            {"% published", 11, number(r.percent_published, "%.1f"), false, true},
            {"% CUTLASS", 9, number(r.percent_cutlass, "%.1f"), true, true},
            {"% ceiling", 9, number(r.percent_ceiling, "%.1f"), true, true},
            {"GB/s", 8, number(r.c->bytes / r.median * 1e-9, "%.1f"), true, true},
            {"% copy", 6, number(r.percent_copy, "%.1f"), true, false},
            {"MHz", 6, number(r.mhz, "%.0f"), true, false},
            {"W", 6, number(watts, "%.0f"), true, false},
            {"pJ/FLOP", 8, number(r.picojoules, "%.3f"), true, false},
            {"rel error", 9, number(r.c->error, "%.1e"), true, true},
        };
    }

    void table(const Row &r)
    {
        const std::vector<Column> all = columns(r);
        if (group_ != r.c->group) {
            group_ = r.c->group;
            fprintf(file_, "\n%s%s\n  %-22s", group_.c_str(), modelled_ ? ", modelled, not measured" : "", "kernel");
            for (const Column &column : all)
                if (modelled_ ? column.when_modelled : column.when_measured)
                    fprintf(file_, " %*s", column.width, column.title);
            fprintf(file_, "\n");
        }
        fprintf(file_, "  %-22s", r.c->name);
        if (r.c->failure) {
            fprintf(file_, " %s\n", r.c->failure);
            return;
        }
        for (const Column &column : all)
            if (modelled_ ? column.when_modelled : column.when_measured)
                fprintf(file_, " %*s", column.width, column.value.c_str());
        fprintf(file_, "%s%s\n", r.c->note ? "  " : "", r.c->note ? r.c->note : "");
    }

    void csv(const Row &r)
    {
        fprintf(file_, "%s,%s,%s,%.3f,%.3f,%.3f,%.3f,%s,%s,%s,%s,%.2f,%s,%s,%s,%s,%s,%s", r.c->group, r.c->name,
                r.c->note ? r.c->note : "", r.median * 1e6, r.q1 * 1e6, r.q3 * 1e6, r.c->failure ? 0 : r.rate() * 1e-12,
                number(r.percent_cublas, "%.2f").c_str(), number(r.percent_cutlass, "%.2f").c_str(),
                number(r.percent_ceiling, "%.2f").c_str(), number(r.percent_copy, "%.2f").c_str(),
                r.c->failure ? 0 : r.c->bytes / r.median * 1e-9, number(r.mhz, "%.0f", "").c_str(),
                number(r.power, "%.1f", "").c_str(), number(r.watts, "%.2f", "").c_str(),
                number(r.picojoules, "%.4f", "").c_str(), number(r.c->error, "%.3e").c_str(),
                r.c->failure ? quoted(r.c->failure).c_str() : "");
        if (modelled_)
            fprintf(file_, ",%s", number(r.events * 1e6, "%.3f", "").c_str());
        fprintf(file_, "\n");
    }

    void json(const Row &r)
    {
        fprintf(file_, "%s\n{\"problem\": %s, \"kernel\": %s", first_ ? "" : ",", quoted(r.c->group).c_str(),
                quoted(r.c->name).c_str());
        first_ = false;
        if (r.c->note)
            fprintf(file_, ", \"note\": %s", quoted(r.c->note).c_str());
        if (r.c->on_t4)
            fprintf(file_, ", \"on_t4\": %s", quoted(r.c->on_t4).c_str());
        if (*r.c->images)
            fprintf(file_, ", \"images\": %s", quoted(r.c->images).c_str());
        if (r.c->failure) {
            fprintf(file_, ", \"failure\": %s}", quoted(r.c->failure).c_str());
            return;
        }
        fprintf(file_,
                ", \"median_us\": %.3f, \"q1_us\": %.3f, \"q3_us\": %.3f, \"tflops\": %.3f, "
                "\"gb_per_s\": %.2f",
                r.median * 1e6, r.q1 * 1e6, r.q3 * 1e6, r.rate() * 1e-12, r.c->bytes / r.median * 1e-9);
        member("events_us", r.events * 1e6, "%.3f");
        member("mhz", r.mhz, "%.0f");
        member("power_w", r.power, "%.1f");
        member("watts", r.watts, "%.2f");
        member("pj_per_flop", r.picojoules, "%.4f");
        member("percent_cublas", r.percent_cublas, "%.2f");
        member("percent_published", r.percent_published, "%.2f");
        member("percent_cutlass", r.percent_cutlass, "%.2f");
        member("percent_ceiling", r.percent_ceiling, "%.2f");
        member("percent_copy", r.percent_copy, "%.2f");
        member("relative_error", r.c->error, "%.3e");
        members("us", r.seconds.data(), r.seconds.size(), 1e6, "%.3f");
        if (r.watts >= 0) {
            members("joules", r.c->joules, r.seconds.size(), 1, "%.3f");
            members("window_s", r.c->window, r.seconds.size(), 1, "%.4f");
        }
        fprintf(file_, "}");
    }

    // A value that is known.
    void member(const char *name, double value, const char *format)
    {
        if (value >= 0)
            fprintf(file_, ", \"%s\": %s", name, number(value, format).c_str());
    }

    void members(const char *name, const double *values, size_t count, double factor, const char *format)
    {
        fprintf(file_, ", \"%s\": [", name);
        for (size_t i = 0; i < count; ++i)
            fprintf(file_, "%s%s", i ? ", " : "",
                    number(values[i] > 0 ? values[i] * factor : -1, format, "null").c_str());
        fprintf(file_, "]");
    }

    static std::string number(double value, const char *format, const char *unknown = "-")
    {
        char text[32];
        snprintf(text, sizeof text, format, value);
        return value >= 0 ? text : unknown;
    }

    FILE *file_;
    std::string format_;
    bool modelled_;
    std::string group_; // of the table's last row
    bool first_ = true;
};

class Reporter : public benchmark::BenchmarkReporter
{
  public:
    explicit Reporter(std::vector<Output> outputs)
        : outputs_(std::move(outputs)), rates_(cases.size(), 0), moved_(cases.size(), 0)
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
        size_t number = 0;
        for (const Run &run : runs) {
            if (run.run_type != Run::RT_Iteration)
                continue; // Google Benchmark's mean and deviation: the median is what counts here
            number = numbers_.at(run.run_name.function_name);
            row.seconds.push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
        }
        if (row.seconds.empty())
            return;
        row.c = cases[number];
        row.median = quantile(row.seconds, 0.5);
        row.q1 = quantile(row.seconds, 0.25);
        row.q3 = quantile(row.seconds, 0.75);
        const double beside = median_of_known({row.c->beside, row.c->beside + row.c->repetitions});
        row.events = beside < 0 || row.c->failure ? -1 : row.median + beside;
        std::vector<double> watts, picojoules;
        for (size_t i = 0; i < row.seconds.size() && !row.c->failure; ++i)
            if (row.c->window[i] > 0) {
                watts.push_back(row.c->joules[i] / row.c->window[i]);
                picojoules.push_back(watts.back() * row.c->seconds[i] / row.c->operations * 1e12);
            }
        row.mhz = median_of_known({row.c->mhz, row.c->mhz + row.c->repetitions});
        row.power = median_of_known({row.c->power, row.c->power + row.c->repetitions});
        row.watts = median_of_known(watts);
        row.picojoules = median_of_known(picojoules);
        rates_[number] = row.c->failure ? 0 : row.rate();
        moved_[number] = row.c->failure ? 0 : row.c->bytes / row.median;
        row.percent_cublas = percent(rates_, number, row.c->cublas);
        row.percent_cutlass = percent(rates_, number, row.c->cutlass);
        row.percent_ceiling = percent(rates_, number, row.c->ceiling);
        row.percent_copy = percent(moved_, number, row.c->copy);
        const double shown = row.events > 0 ? row.events : row.median; // as the published times were taken
        row.percent_published =
            rates_[number] > 0 && row.c->published > 0 ? 100 * row.c->operations / shown / row.c->published : -1;
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
    static double percent(const std::vector<double> &rates, size_t number, int of)
    {
        return of < 0 || !(rates[of] > 0) ? -1 : 100 * rates[number] / rates[of];
    }

    std::vector<Output> outputs_;
    std::map<std::string, size_t> numbers_;
    std::vector<double> rates_, moved_; // operations and bytes per second, of the cases that were reported
    int failures_ = 0;
};

} // namespace

int gbench_register(gbench_case_t *c)
{
    cases.push_back(c);
    auto repetition = std::make_shared<int>(0);
    benchmark::RegisterBenchmark(name_of(*c).c_str(),
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

int gbench_run(const char *format, const char *path, int modelled)
{
    std::vector<Output> outputs;
    FILE *file = nullptr;
    if (path) {
        file = fopen(path, "w");
        if (!file)
            return -1;
        outputs.emplace_back(file, format, modelled != 0);
        outputs.emplace_back(stdout, "table", modelled != 0);
    } else {
        outputs.emplace_back(stdout, format, modelled != 0);
    }
    Reporter reporter(std::move(outputs));
    benchmark::RunSpecifiedBenchmarks(&reporter);
    if (file && fclose(file) != 0)
        return -1;
    return reporter.failures();
}
