# Filled in by tools/gen: zeze_generate(TARGET SOLUTION file.xml ...).
