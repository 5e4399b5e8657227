"""Image classifiers as layers (``paddle.vision.models``), one family a module.

    lenet           LeNet
    vgg             VGG with 11, 13, 16 and 19 layers
    resnet          ResNet with 18 to 152 layers
    mobilenetv1     MobileNetV1
    mobilenetv2     MobileNetV2
    pretrained      refuses pretrained weights

Names of sublayers are those of the original, so that saved states fit by path. A layer makes its parameters in the
default programs, like any other; there are no pretrained weights, since nothing is ever fetched.
"""
