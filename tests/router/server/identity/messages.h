// What is said in the session that a test kills.
#pragma once

namespace kvasir::server {

// Longer than one part of a checkpoint (256 tokens).
inline constexpr char kFirstMessage[] =
    "My cat is called Tofu. He is six years old, grey, and likes tuna more than chicken. In the "
    "morning he sits on the kitchen table and waits until somebody opens the window; then he looks "
    "at the birds in the apple tree for an hour or two, and nothing in the world can make him come "
    "down. At noon he sleeps on the piano. My sister says that he listens to the strings, because "
    "he purrs when a lorry goes by and the low ones begin to hum. In the afternoon he visits the "
    "neighbours, who have a dog named Bruno and a garden with a pond. Once he fell into the pond, "
    "and since then he walks around it in a wide circle and looks at the dog as if it had been its "
    "fault. In the evening he wants to be brushed, first the back, then the ears, and never the "
    "tail. When it rains he stays in the basement, between the washing machine and the old shelf "
    "with the preserves, and comes up only when he hears the tin opener. He has been to the vet "
    "three times: for his vaccination, for a thorn in his left front paw, and because he had eaten "
    "a piece of a balloon. The vet is called Doctor Lindqvist and has a parrot that can say the "
    "names of all her patients. It says Tofu with a very long o. We are going to move to Malmo in "
    "May, and I would like to know how he can get used to a new flat without a garden. Please keep "
    "your answer short.";
inline constexpr char kSecondMessage[] =
    "Thank you. What was the name of my cat, what does he like to eat, and where do we move?";

}  // namespace kvasir::server
