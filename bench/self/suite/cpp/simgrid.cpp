// Feeds SimGrid the graph of a text file: a line "INSTRUCTIONS LANES", then
// for each instruction its lane, its duration in ns and its predecessors.
// Lanes are hosts; program order on a lane is a chain of dependencies. One ns
// is a second of simulated time, because SimGrid's clock cannot tell times
// apart that differ by a ns. Prints the end of the last instruction in ns.
#include <simgrid/s4u.hpp>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

int main(int argc, char** argv)
{
  sg4::Engine engine(&argc, argv);
  if (argc != 2)
    return 2;
  std::ifstream in(argv[1]);
  size_t instructions, lanes;
  if (!(in >> instructions >> lanes))
    return 1;
  auto* zone = sg4::create_full_zone("core");
  std::vector<sg4::Host*> hosts;
  for (size_t l = 0; l < lanes; l++)
    hosts.push_back(zone->create_host("lane" + std::to_string(l), "1f"));
  zone->seal();

  std::vector<sg4::ExecPtr> all;
  std::vector<sg4::ExecPtr> last(lanes);
  all.reserve(instructions);
  for (size_t i = 0; i < instructions; i++) {
    size_t lane, predecessors;
    double ns;
    if (!(in >> lane >> ns >> predecessors))
      return 1;
    sg4::ExecPtr exec = sg4::Exec::init();
    exec->set_flops_amount(ns);
    if (last[lane])
      last[lane]->add_successor(exec);
    for (size_t p = 0; p < predecessors; p++) {
      size_t to;
      if (!(in >> to) || to >= i)
        return 1;
      if (all[to] != last[lane])
        all[to]->add_successor(exec);
    }
    exec->set_host(hosts[lane]);
    last[lane] = exec;
    all.push_back(exec);
  }
  for (auto& exec : all)
    exec->vetoable_start();
  engine.run();
  std::printf("%.0f\n", std::round(sg4::Engine::get_clock()));
  return 0;
}
