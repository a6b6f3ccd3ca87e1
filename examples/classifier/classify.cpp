// classify LIBRARY IMAGE.pgm: which way the stripes of a 16x16 grey image (plain PGM) run.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "stripes.h"  // written with the library: its shapes and a typed call

static std::vector<float> read_image(const char *path) {
    std::ifstream file(path);
    std::string magic;
    std::size_t width = 0, height = 0;
    float white = 1;
    file >> magic >> width >> height >> white;
    std::vector<float> pixels(magic == "P2" ? width * height : 0);
    for (float &pixel : pixels) {
        file >> pixel;
        pixel /= white;
    }
    return file ? pixels : std::vector<float>();
}

int main(int argc, char **argv) {
    static const char *const directions[] = {"horizontal", "vertical", "falling", "rising"};
    static_assert(STRIPES_OUT_PROBABILITIES_COUNT == 4, "a probability a direction");
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s LIBRARY IMAGE.pgm\n", argv[0]);
        return 2;
    }
    const std::vector<float> image = read_image(argv[2]);
    if (image.size() != STRIPES_IN_IMAGE_COUNT) {
        std::fprintf(stderr, "%s: not a plain PGM of 16x16 pixels\n", argv[2]);
        return 1;
    }
    float probabilities[STRIPES_OUT_PROBABILITIES_COUNT];
    ansor_deploy_model *model = stripes_load(argv[1]);
    if (model == nullptr || stripes_run(model, image.data(), probabilities) != 0) {
        std::fprintf(stderr, "%s\n", ansor_deploy_last_error());
        return 1;
    }
    for (int at = 0; at < STRIPES_OUT_PROBABILITIES_COUNT; at++)
        std::printf("%-10s %.6f\n", directions[at], probabilities[at]);
    ansor_deploy_free(model);
    return 0;
}
